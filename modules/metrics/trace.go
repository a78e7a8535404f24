package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynmcp/dynmcp/internal/event"
)

// Traces are sent to the endpoint that the variables of OpenTelemetry name, if any. The SDK makes
// and batches the spans. The exporter below sends them as OTLP over HTTP in JSON: the library's
// exporter imports gRPC and protocol buffers, which would cost every start of dynmcp 2 ms and
// 7 MB.

// A tracer makes a span of each call.
type tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger
}

// newTracer returns a tracer if OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
// is set, unless OTEL_SDK_DISABLED is true or OTEL_TRACES_EXPORTER is none. Otherwise it returns
// nil. It is an error if a variable is invalid. replica is the name of this replica, "" without a
// cluster.
func newTracer(version, replica string, log *slog.Logger) (*tracer, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	e, err := exporterFromEnv()
	if e == nil || err != nil {
		return nil, err
	}
	service := []attribute.KeyValue{attribute.String("service.name", "dynmcp"), attribute.String("service.version", version)}
	if replica != "" {
		service = append(service, attribute.String("service.instance.id", replica))
	}
	about, err := resource.New(context.Background(), resource.WithAttributes(service...),
		resource.WithTelemetrySDK(), resource.WithFromEnv()) // the last wins
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e), sdktrace.WithResource(about))
	return &tracer{p, p.Tracer("dynmcp"), log}, nil
}

// Close sends the remaining spans, for five seconds at most.
func (t *tracer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces were not sent", "err", err)
	}
}

// Call makes the span of a call that has ended, as a child of the host's span. Names are those of
// OpenTelemetry's semantic conventions for MCP.
func (t *tracer) Call(end event.Call) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": end.TraceParent})
	name := end.Method
	attributes := []attribute.KeyValue{
		attribute.String("mcp.method.name", end.Method),
		attribute.String("mcp.session.id", end.From.ID),
		attribute.String("dynmcp.upstream", end.Upstream),
		attribute.Int("dynmcp.params.size", end.Asked),
		attribute.Int("dynmcp.result.size", end.Answered),
	}
	if end.Tool != "" {
		name += " " + end.Tool
		attributes = append(attributes, attribute.String("gen_ai.tool.name", end.Tool))
	}
	if end.Outcome != "" {
		attributes = append(attributes, attribute.String("dynmcp.outcome", string(end.Outcome)))
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(end.Began), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	if end.Kind != "ok" {
		span.SetAttributes(attribute.String("error.type", end.Kind))
		span.SetStatus(codes.Error, end.Kind)
	}
	span.End(trace.WithTimestamp(end.End))
}

// An exporter sends spans as OTLP over HTTP (opentelemetry.io/docs/specs/otlp, "JSON
// Protobuf Encoding").
type exporter struct {
	url     string
	header  http.Header
	timeout time.Duration
}

// exporterFromEnv returns nil without an endpoint.
func exporterFromEnv() (*exporter, error) {
	of := func(name string) (value, from string) { // variables for traces override those for all signals
		for _, variable := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if v := os.Getenv(variable); v != "" {
				return v, variable
			}
		}
		return "", ""
	}
	endpoint, from := of("ENDPOINT")
	if endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: %q is no http or https URL", from, endpoint)
	}
	if from == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1/traces")
	}
	if protocol, from := of("PROTOCOL"); protocol != "" && !strings.HasPrefix(protocol, "http/") {
		return nil, fmt.Errorf("%s: %q is not spoken here, only http/json is", from, protocol)
	}
	e := &exporter{url: u.String(), header: http.Header{"Content-Type": {"application/json"}}, timeout: 10 * time.Second}
	if text, from := of("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s: %q is no number of milliseconds", from, text)
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	headers, from := of("HEADERS")
	for pair := range strings.SplitSeq(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: entries are name=value, with commas between them", from)
		}
		e.header.Set(strings.TrimSpace(name), text)
	}
	return e, nil
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := json.Marshal(request(spans))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	for pause := time.Second; ; pause *= 2 {
		retry, err := e.post(ctx, body)
		if err == nil || !retry {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("traces to %s: %w", e.url, err)
		}
	}
}

// post sends a request once. retry reports whether it may be sent again (OTLP, "Failures").
func (e *exporter) post(ctx context.Context, body []byte) (retry bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header = e.header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, fmt.Errorf("the collector answers %s", resp.Status)
	}
	return false, fmt.Errorf("traces to %s: the collector answers %s", e.url, resp.Status)
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error { return nil }

type object = map[string]any

// request returns spans of one resource as an ExportTraceServiceRequest in JSON.
func request(spans []sdktrace.ReadOnlySpan) object {
	list := make([]object, 0, len(spans))
	for _, s := range spans {
		span := object{
			"traceId":           s.SpanContext().TraceID().String(),
			"spanId":            s.SpanContext().SpanID().String(),
			"name":              s.Name(),
			"kind":              int(s.SpanKind()),
			"startTimeUnixNano": strconv.FormatInt(s.StartTime().UnixNano(), 10),
			"endTimeUnixNano":   strconv.FormatInt(s.EndTime().UnixNano(), 10),
			"attributes":        keyValues(s.Attributes()),
		}
		if parent := s.Parent(); parent.HasSpanID() {
			span["parentSpanId"] = parent.SpanID().String()
		}
		if s.Status().Code == codes.Error {
			span["status"] = object{"code": 2, "message": s.Status().Description} // STATUS_CODE_ERROR
		}
		list = append(list, span)
	}
	scope := object{"scope": object{"name": "dynmcp"}, "spans": list}
	about := object{}
	if len(spans) > 0 {
		about["attributes"] = keyValues(spans[0].Resource().Attributes())
	}
	return object{"resourceSpans": []object{{"resource": about, "scopeSpans": []object{scope}}}}
}

func keyValues(attributes []attribute.KeyValue) []object {
	list := make([]object, 0, len(attributes))
	for _, kv := range attributes {
		value := object{"stringValue": kv.Value.String()}
		if kv.Value.Type() == attribute.INT64 {
			value = object{"intValue": strconv.FormatInt(kv.Value.AsInt64(), 10)}
		}
		list = append(list, object{"key": string(kv.Key), "value": value})
	}
	return list
}
