{{- define "bigfleet-operator.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Chart.Name }}
{{- end }}

{{- define "bigfleet-operator.bootstrap" -}}
{{- if and .Values.bootstrapTemplate .Values.bootstrapTemplateSecret.name -}}
{{- fail "bootstrapTemplate and bootstrapTemplateSecret.name are both set: give one of them" -}}
{{- end -}}
{{- if or .Values.bootstrapTemplate .Values.bootstrapTemplateSecret.name }}true{{ end -}}
{{- end }}

{{- /* The port of the shard, for the network policy. */ -}}
{{- define "bigfleet-operator.shardPort" -}}
{{ regexFind "[0-9]+$" .Values.shardAddress }}
{{- end }}

{{- define "bigfleet-operator.check" -}}
{{- if not .Values.clusterID -}}
{{- fail "clusterID is empty: give this cluster a name that never changes, --set clusterID=prod-eu-1" -}}
{{- end -}}
{{- if not .Values.shardAddress -}}
{{- fail "shardAddress is empty: give host:port of the one shard that serves this cluster, --set shardAddress=bigfleet-shard-0.bigfleet-shard-headless.bigfleet-system.svc:7780" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElect) -}}
{{- fail "replicas is above 1 without leaderElect: two sessions of one cluster evict each other; set replicas=1 or leaderElect=true" -}}
{{- end -}}
{{- if and .Values.bootstrapTokens.pool (not .Values.bootstrapTokens.apiServer) -}}
{{- fail "bootstrapTokens.pool needs bootstrapTokens.apiServer: the address at which new nodes reach the API server" -}}
{{- end -}}
{{- if and .Values.tls.require (not .Values.tls.secretName) -}}
{{- fail "tls.require needs tls.secretName: a Secret with tls.crt, tls.key and ca.crt" -}}
{{- end -}}
{{- end }}
