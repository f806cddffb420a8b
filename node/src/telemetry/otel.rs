//! Spans for a collector of OpenTelemetry, by OTLP over HTTP, with the variables of its specification
//! (`OTEL_EXPORTER_OTLP_ENDPOINT` and others, OpenTelemetry Protocol Exporter).
//!
//! All spans of a job, of whatever site, are of one trace: its number follows from run and job, so that nothing needs to
//! travel with the job.

use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use scheduler::JobId;
use sha2::{Digest as _, Sha256};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use super::jobs::TARGET;

/// Either of them says where spans go; without both there is no export.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
/// How long the end of a process waits for the last spans to be taken: less than a coordinator waits for that end.
const LAST_MAX: Duration = Duration::from_secs(2);

/// Exports what is left when it is dropped.
#[derive(Debug)]
pub(super) struct Export(SdkTracerProvider);

impl Drop for Export {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST_MAX) {
            // Nobody logs any more.
            eprintln!("warning: the last spans were not exported: {error}");
        }
    }
}

/// A layer that exports spans, if the environment says where to.
pub(super) fn layer<S>() -> anyhow::Result<Option<(impl Layer<S>, Export)>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if !ENDPOINTS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Ok(None);
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .build()
        .with_context(|| format!("spans cannot be exported; see {}", ENDPOINTS.join(" and ")))?;
    let resource = Resource::builder()
        .with_service_name("stealgrid")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let tracer = provider.tracer("stealgrid");
    let wanted = Targets::new().with_target(TARGET, LevelFilter::DEBUG);
    let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_filter(wanted);
    Ok(Some((layer, Export(provider))))
}

/// The span becomes part of the trace of a job.
pub(super) fn put_into_trace(span: &Span, run: &str, job: JobId) {
    let mut digest = Sha256::new();
    digest.update(run.as_bytes());
    // No name of a run has it, so that no two pairs read alike.
    digest.update([0]);
    digest.update(job.0.to_le_bytes());
    let digest = digest.finalize();
    let trace = TraceId::from_bytes(*digest.first_chunk().expect("a digest is longer"));
    // The job itself, which is no span of any site.
    let root = SpanId::from_bytes(*digest[16..].first_chunk().expect("a digest is longer"));
    let parent = SpanContext::new(trace, root, TraceFlags::SAMPLED, true, TraceState::NONE);
    // Fails if no layer exports the span; then it needs no trace.
    let _ = span.set_parent(Context::new().with_remote_span_context(parent));
}
