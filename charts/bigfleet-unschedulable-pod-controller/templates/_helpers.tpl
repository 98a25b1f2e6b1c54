{{- define "bigfleet-unschedulable-pod-controller.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Chart.Name }}
{{- end }}

{{- define "bigfleet-unschedulable-pod-controller.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElect) -}}
{{- fail "replicas is above 1 without leaderElect: set replicas=1 or leaderElect=true" -}}
{{- end -}}
{{- end }}
