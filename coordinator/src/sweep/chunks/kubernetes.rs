//! An Indexed Job of Kubernetes, as a manifest: a pod computes a chunk.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::engines::options;
use super::folder::PlanFolder;

/// An Indexed Job has no more, by Kubernetes.
const COMPLETIONS_MAX: usize = 100_000;
/// Pods at a time unless the user says otherwise.
const PARALLELISM: usize = 10;
/// How often a pod of one chunk is started again.
const RETRIES: usize = 3;
/// Exit codes that a second try does not change: usage, an input that is not what it was, and results that have failed runs.
const FINAL: [u8; 3] = [2, 3, 5];

/// What stands behind `kubernetes:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    image: String,
    claim: String,
    /// Where pods see the volume.
    mount: Option<PathBuf>,
    namespace: Option<String>,
    parallelism: usize,
    cpu: String,
    memory: String,
}

impl FromStr for Options {
    type Err = String;

    fn from_str(text: &str) -> Result<Options, String> {
        let mut known = options(text)?;
        let mut needed = |key: &str, example: &str| {
            known
                .remove(key)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| format!("kubernetes needs {key}, as in {key}={example}"))
        };
        let image = needed("image", "registry.example/stealgrid:0.1.0")?;
        let claim = needed("claim", "sweeps, a claim of a volume that all nodes write")?;
        let parallelism = match known.remove("parallelism") {
            None => PARALLELISM,
            Some(value) => {
                value.parse().ok().filter(|count| *count > 0).ok_or("parallelism needs a number of pods")?
            }
        };
        let found = Options {
            image,
            claim,
            mount: known.remove("mount").map(PathBuf::from),
            namespace: known.remove("namespace"),
            parallelism,
            cpu: known.remove("cpu").unwrap_or_else(|| "1".to_string()),
            memory: known.remove("memory").unwrap_or_else(|| "1Gi".to_string()),
        };
        match known.keys().next() {
            None => Ok(found),
            Some(key) => Err(format!(
                "{key} is no option of kubernetes; there are image, claim, mount, namespace, parallelism, cpu, memory"
            )),
        }
    }
}

/// Writes manifests of jobs that compute these chunks. Returns where they are.
///
/// # Errors
/// If the plan cannot be seen by pods, or the disk takes nothing.
pub fn write(options: &Options, folder: &PlanFolder, chunks: &[usize]) -> anyhow::Result<Vec<PathBuf>> {
    let place = std::path::absolute(folder.path())?;
    let mount = options.mount.as_deref().or(place.parent()).unwrap_or(Path::new("/"));
    anyhow::ensure!(
        place.starts_with(mount),
        "failed to use {}: pods see {} only; plan into a folder of it, or say where the volume is with mount=",
        place.display(),
        mount.display()
    );
    let outside = folder
        .head
        .logs
        .keys()
        .find(|log| !experiments::experiment::built_in::is_built_in(log) && !log.starts_with(mount));
    if let Some(log) = outside {
        anyhow::bail!(
            "failed to use the log {}: pods see {} only; put logs there, and say so with --traces",
            log.display(),
            mount.display()
        );
    }
    let mut written = Vec::new();
    for part in chunks.chunks(COMPLETIONS_MAX) {
        let offer = folder.offer(part).map_err(|error| anyhow::anyhow!("failed to {error}"))?;
        let path = folder.path().join(format!("kubernetes-{offer}.json"));
        let job = job(options, &folder.head.name, &place, mount, offer, part.len())?;
        let text = serde_json::to_string_pretty(&job)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

fn job(
    options: &Options,
    name: &str,
    plan: &Path,
    mount: &Path,
    offer: usize,
    chunks: usize,
) -> anyhow::Result<Value> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_string);
        text.with_context(|| format!("failed to use {}: Kubernetes needs text", path.display()))
    };
    let arguments = ["sweep", "work", &text(plan)?, "--offer", &offer.to_string()].map(str::to_string);
    let mut metadata = json!({
        "name": format!("stealgrid-{}-{offer}", in_a_name(name)),
        "labels": { "app.kubernetes.io/name": "stealgrid", "app.kubernetes.io/component": "sweep" },
    });
    if let Some(namespace) = &options.namespace {
        metadata["namespace"] = json!(namespace);
    }
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": chunks,
            "parallelism": options.parallelism.min(chunks),
            "backoffLimitPerIndex": RETRIES,
            "maxFailedIndexes": chunks,
            "podFailurePolicy": {
                "rules": [
                    { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
                    { "action": "FailIndex", "onExitCodes": { "containerName": "worker", "operator": "In", "values": FINAL } },
                ],
            },
            "template": {
                "metadata": { "labels": { "app.kubernetes.io/name": "stealgrid", "app.kubernetes.io/component": "sweep" } },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "worker",
                        "image": options.image,
                        "command": ["stealgrid"],
                        "args": arguments,
                        "resources": {
                            "requests": { "cpu": options.cpu, "memory": options.memory },
                            "limits": { "memory": options.memory },
                        },
                        "volumeMounts": [{ "name": "sweeps", "mountPath": text(mount)? }],
                    }],
                    "volumes": [{ "name": "sweeps", "persistentVolumeClaim": { "claimName": options.claim } }],
                },
            },
        },
    }))
}

/// A name as Kubernetes takes it: small letters, digits and dashes, not too many.
fn in_a_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).take(40).collect();
    name.trim_matches('-').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_a_pod_for_each_chunk_and_tries_only_what_may_help() {
        let options: Options = "image=a:1,claim=data,parallelism=4,mount=/data".parse().unwrap();
        let job = job(&options, "Delay study", Path::new("/data/x.plan"), Path::new("/data"), 2, 3).unwrap();
        assert_eq!(job["metadata"]["name"], "stealgrid-delay-study-2");
        let spec = &job["spec"];
        assert_eq!([&spec["completions"], &spec["parallelism"]], [3, 3]);
        let container = &spec["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!(["sweep", "work", "/data/x.plan", "--offer", "2"]));
        assert_eq!(spec["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"], json!([2, 3, 5]));
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for (text, word) in
            [("", "image="), ("image=a", "claim="), ("image=a,claim=b,cpus=2", "cpus is no option")]
        {
            let error = text.parse::<Options>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
