{{- /* Generated from crates/charts/shared; do not edit.
cargo run -p bigfleet-charts --example generate */ -}}

{{- define "bigfleet.namespace" -}}
{{ .Values.namespace | default .Release.Namespace }}
{{- end }}

{{- /* Takes (list root name): what tells the pods of one process from all others. */ -}}
{{- define "bigfleet.selector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{- /* Takes (list root name). */ -}}
{{- define "bigfleet.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "bigfleet.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end }}

{{- /* Takes (list root image). */ -}}
{{- define "bigfleet.image" -}}
{{- $image := index . 1 -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- end }}

{{- define "bigfleet.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "bigfleet.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* Where pods may run, and what they pull with. Takes the values that hold it. */ -}}
{{- define "bigfleet.scheduling" -}}
{{- with .imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- /* Takes (list root name values): those given, or zones and hosts where that is possible. */ -}}
{{- define "bigfleet.spread" -}}
{{- $values := index . 2 -}}
topologySpreadConstraints:
{{- with $values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - topologyKey: {{ $key }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "bigfleet.selector" $ | nindent 8 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Flags that every process has. Takes the values that hold them. */ -}}
{{- define "bigfleet.sharedArgs" -}}
- --log-level={{ .log.level }}
- --log-format={{ .log.format }}
{{- if .debugEndpoints }}
- --debug-endpoints=true
{{- end }}
{{- with .otlpEndpoint }}
- --otlp-endpoint={{ . }}
{{- end }}
{{- with .extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Flags of mTLS. Takes the folder of the three files. */ -}}
{{- define "bigfleet.tlsArgs" -}}
- --tls-cert={{ . }}/tls.crt
- --tls-key={{ . }}/tls.key
- --tls-ca={{ . }}/ca.crt
{{- end }}

{{- /* Source of a projected volume: a TLS Secret. Takes (list secretName folder). */ -}}
{{- define "bigfleet.tlsSource" -}}
{{- $folder := index . 1 -}}
- secret:
    name: {{ index . 0 }}
    items:
      {{- range $file := list "tls.crt" "tls.key" "ca.crt" }}
      - key: {{ $file }}
        path: {{ $folder }}/{{ $file }}
      {{- end }}
{{- end }}

{{- /* HTTP probes on the port named metrics. */ -}}
{{- define "bigfleet.httpProbes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{- define "bigfleet.podEnv" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- end }}

{{- /* A PodMonitor. Takes (list root name); its job is the name, which the rules count on. */ -}}
{{- define "bigfleet.podMonitor" -}}
{{- $root := index . 0 -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ index . 1 }}
  namespace: {{ include "bigfleet.namespace" $root }}
  labels:
    {{- include "bigfleet.labels" . | nindent 4 }}
    {{- with $root.Values.podMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  jobLabel: app.kubernetes.io/name
  selector:
    matchLabels:
      {{- include "bigfleet.selector" . | nindent 6 }}
  podMetricsEndpoints:
    - port: metrics
      path: /metrics
      interval: {{ $root.Values.podMonitor.interval }}
{{- end }}

{{- /* ConfigMaps of Grafana dashboards, one for each file of the folder. */ -}}
{{- define "bigfleet.dashboards" -}}
{{- range $path, $bytes := .Files.Glob "dashboards/*.json" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Chart.Name }}-dashboard-{{ base $path | trimSuffix ".json" }}
  namespace: {{ include "bigfleet.namespace" $ }}
  labels:
    {{- include "bigfleet.labels" (list $ $.Chart.Name) | nindent 4 }}
    {{- toYaml $.Values.dashboards.labels | nindent 4 }}
  {{- with $.Values.dashboards.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
data:
  {{ base $path }}: |
    {{- $.Files.Get $path | nindent 4 }}
{{- end }}
{{- end }}
