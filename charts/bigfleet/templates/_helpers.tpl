{{- define "bigfleet.serviceAccount" -}}
{{ .Values.serviceAccount.name | default "bigfleet" }}
{{- end }}

{{- /* What shards and the dashboard dial. Takes (list root given). */ -}}
{{- define "bigfleet.coordinatorAddr" -}}
{{- $root := index . 0 -}}
{{- if index . 1 -}}
{{ index . 1 }}
{{- else if $root.Values.coordinator.enabled -}}
bigfleet-coordinator.{{ include "bigfleet.namespace" $root }}.svc:{{ $root.Values.coordinator.service.port }}
{{- end -}}
{{- end }}

{{- /* Whether a process speaks mTLS; empty is no. Takes (list path values). */ -}}
{{- define "bigfleet.tls" -}}
{{- $path := index . 0 -}}
{{- $tls := (index . 1).tls -}}
{{- if and $tls.secretName $tls.secretNameTemplate -}}
{{- fail (printf "%s.tls.secretName and %s.tls.secretNameTemplate are both set: give one of them" $path $path) -}}
{{- end -}}
{{- if or $tls.secretName $tls.secretNameTemplate -}}
true
{{- else if $tls.require -}}
{{- fail (printf "%s.tls.require needs %s.tls.secretName or %s.tls.secretNameTemplate" $path $path $path) -}}
{{- end -}}
{{- end }}

{{- /* The projected volume of a StatefulSet's certificates. With a template there is one folder
per replica, since a pod template is the same for all. Takes (list name values). */ -}}
{{- define "bigfleet.tlsVolume" -}}
{{- $name := index . 0 -}}
{{- $values := index . 1 -}}
- name: tls
  projected:
    defaultMode: 288 # 0440
    sources:
      {{- if $values.tls.secretNameTemplate }}
      {{- range $ordinal := until (int $values.replicas) }}
      {{- $secret := replace "{ordinal}" (toString $ordinal) $values.tls.secretNameTemplate }}
      {{- include "bigfleet.tlsSource" (list $secret (printf "%s-%d" $name $ordinal)) | nindent 6 }}
      {{- end }}
      {{- else }}
      {{- include "bigfleet.tlsSource" (list $values.tls.secretName "own") | nindent 6 }}
      {{- end }}
{{- end }}

{{- /* Where a pod finds its own certificate. Takes the values. */ -}}
{{- define "bigfleet.tlsFolder" -}}
/etc/bigfleet/tls/{{ .tls.secretNameTemplate | empty | ternary "own" "$(POD_NAME)" }}
{{- end }}

{{- define "bigfleet.volumeClaim" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storageClassName }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ .size }}
{{- end }}
