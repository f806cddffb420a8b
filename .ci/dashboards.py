"""Checks of Grafana's dashboards and of what a Prometheus makes of them. Called by .ci/monitoring, which says how.

    dashboards.py json           the dashboards themselves
    dashboards.py schema         against Grafana's models; needs the package grafana-foundation-sdk
    dashboards.py run URL        with data: all queries, recording rules and alerts in the Prometheus at URL

Grafana itself is not started: what is here are the parts of it that can be known without.
"""

import enum
import json
import math
import re
import sys
import time
import typing
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "monitoring/grafana/dashboards"
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Of Grafana 12.1, which docker-compose.yml starts. Others are migrated when they are loaded.
SCHEMA_VERSION = 41
# Where a site has trouble there is something to see; where none has, there is not. Efficiencies are of brokers that learn,
# and there is none in these runs. Everything else must show data.
MAY_BE_EMPTY = {("stealgrid-health", "Alerts that fire"), ("stealgrid-site", "Efficiency of sites")}
# They say that this machine is too busy for its run: a figure, not a fault, as exit code 5 of a run.
OF_THE_MACHINE = {"EffectiveDelayAboveInjected", "TimersLate"}
# The same of StrangerRefused, if nothing but handshakes was refused: a node that gets no processor for 10 s breaks one off,
# which to the other end looks like a stranger's. Not of LimitHit: no limit counts a handshake, and a node dials only where
# it has no connection. Nor of LinkDown: connections must have been there before, and be gone for 20 s.
STRANGERS = (
    'increase(stealgrid_control_refused_total{run="RUN"}[5m]) > 0 or '
    'increase(stealgrid_connections_refused_total{run="RUN", reason=~"identity|introduction"}[5m]) > 0'
)
SCRAPE_INTERVAL = 2

problems = []


def problem(text):
    problems.append(text)
    print(f"FAILED: {text}", file=sys.stderr)


def dashboards():
    return [(path, json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]


def panels(dashboard):
    """Panels that show something; rows only have titles."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


# ---- the dashboards themselves


def check_json():
    found = dashboards()
    uids = [dashboard["uid"] for _, dashboard in found]
    if len(set(uids)) < 5 or len(set(uids)) < len(uids):
        problem(f"{FOLDER} must have five dashboards with uids of their own, and has {uids}")
    for path, dashboard in found:
        text = path.read_text()
        if dashboard["uid"] != f"stealgrid-{path.stem}" or dashboard["schemaVersion"] != SCHEMA_VERSION:
            problem(f"{path.name}: uid must be stealgrid-{path.stem}, schemaVersion {SCHEMA_VERSION}")
        if "id" in dashboard or "stealgrid" not in dashboard["tags"]:
            problem(f"{path.name}: must have the tag stealgrid, and no id, which Grafana gives")
        for uid in re.findall(r"/d/([\w-]+)", text):
            if uid not in uids:
                problem(f"{path.name}: links to {uid}, which no dashboard is")
        if not any(link["type"] == "dashboards" and link["includeVars"] for link in dashboard["links"]):
            problem(f"{path.name}: has no links to the other dashboards")
        variables = [variable["name"] for variable in dashboard["templating"]["list"]]
        if variables[:2] != ["datasource", "run"]:
            problem(f"{path.name}: the first variables must be datasource and run, and are {variables}")
        known = set(variables) | {"__rate_interval", "__range", "__interval", "__field", "__url_time_range"}
        for used in re.findall(r"\$\{?(\w+)", text):
            if used not in known:
                problem(f"{path.name}: uses ${used}, which is no variable")
        ids = [panel["id"] for panel in dashboard["panels"]]
        if len(set(ids)) < len(ids):
            problem(f"{path.name}: two panels have the same id")
        check_places(path, dashboard)
        for panel in panels(dashboard):
            check_panel(f"{path.name}, {panel['title']}", panel)


def check_places(path, dashboard):
    taken = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24:
            problem(f"{path.name}, {panel['title']}: is wider than the grid of 24 columns")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in taken:
                    problem(f"{path.name}: {panel['title']} lies on {taken[x, y]}")
                    return
                taken[x, y] = panel["title"]


def check_panel(where, panel):
    if len(panel.get("description", "")) < 10:
        problem(f"{where}: has no description")
    if panel.get("datasource") != DATA_SOURCE or any(t.get("datasource") != DATA_SOURCE for t in panel["targets"]):
        problem(f"{where}: its data source must be the variable")
    if not panel["fieldConfig"]["defaults"].get("unit"):
        problem(f"{where}: has no unit")
    references = [target["refId"] for target in panel["targets"]]
    if not references or len(set(references)) < len(references):
        problem(f"{where}: its queries need different names (refId)")
    for target in panel["targets"]:
        if target.get("range", False) == target.get("instant", False):
            problem(f"{where}: query {target['refId']} must be either a range or an instant")
        # Without it, one run would be mixed with the next.
        named = re.sub(r"[\w:]+(?=\s*\()", "", target["expr"])
        for metric, labels in selectors(named):
            if 'run="$run"' not in labels and "all runs" not in panel["title"]:
                problem(f"{where}: {metric} is not restricted to the run")


def selectors(query):
    """Metrics in a query, each with its labels in braces."""
    found = re.findall(r"\b((?:\w+:)?(?:stealgrid_|scrape_)[\w:]+|up|ALERTS)\b(\{[^}]*\})?", query)
    return [(metric, labels) for metric, labels in found]


# ---- against Grafana's models


def check_schema():
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import units
    from grafana_foundation_sdk.models.dashboard import Dashboard

    known = {value for value in vars(units).values() if isinstance(value, str)}
    plugins.register_default_plugins()
    for path, dashboard in dashboards():
        understood = Dashboard.from_json(dashboard)
        compare(path.name, dashboard, json.loads(JSONEncoder(sort_keys=True).encode(understood)))
        check_choices(path.name, understood)
        for unit in re.findall(r'"unit": "([^"]*)"', path.read_text()):
            if unit not in known and not unit.startswith("suffix:"):
                problem(f"{path.name}: Grafana knows no unit {unit}")


def check_choices(where, model):
    """Where Grafana has a closed list of words or numbers, ours is one of it."""
    if isinstance(model, list):
        for index, item in enumerate(model):
            check_choices(f"{where}[{index}]", item)
    elif isinstance(model, dict):
        for key, item in model.items():
            check_choices(f"{where}.{key}", item)
    elif type(model).__module__.startswith("grafana_foundation_sdk"):
        hints = typing.get_type_hints(type(model), vars(sys.modules[type(model).__module__]))
        for name, hint in hints.items():
            value = getattr(model, name)
            for choices in typing.get_args(hint) or [hint]:
                closed = isinstance(choices, type) and issubclass(choices, enum.Enum)
                if closed and value is not None and value not in [choice.value for choice in choices]:
                    problem(f"{where}.{name}: {value!r} is none of {[choice.value for choice in choices]}")
            check_choices(f"{where}.{name}", value)


# Annotations and variables belong to their data source's plugin, of whose parts the models know only some. These are
# what Grafana's own data source for Prometheus reads.
OF_PLUGINS = {"titleFormat", "tagKeys", "textFormat", "useValueForTime", "step", "definition", "target"}


def compare(where, ours, theirs):
    """All that is ours must have been understood: what the models do not know they leave out."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in OF_PLUGINS:
                continue
            if key in theirs:
                compare(f"{where}.{key}", value, theirs[key])
            elif value is not None:
                problem(f"{where}: Grafana knows no {key} here")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs)):
            compare(f"{where}[{index}]", one, other)
    elif ours != theirs:
        problem(f"{where}: Grafana makes {theirs!r} of {ours!r}")


# ---- with data


class Prometheus:
    def __init__(self, url):
        self.url = url.rstrip("/")

    def get(self, path, **arguments):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(arguments, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error).get("error", str(error))) from error

    def instant(self, query, at):
        """Series as pairs of labels and values."""
        return [(s["metric"], [s["value"][1]]) for s in self.get("query", query=query, time=at)["result"]]

    def range(self, query, since, until):
        found = self.get("query_range", query=query, start=since, end=until, step=SCRAPE_INTERVAL)["result"]
        return [(s["metric"], [value for _, value in s["values"]]) for s in found]


class Moment:
    """A run that the Prometheus has scraped: when it began, and a moment when it was in full swing."""

    def __init__(self, prometheus):
        now = time.time()
        alive = prometheus.get(
            "query_range", query="sum by (run) (stealgrid_ready)", start=now - 3600, end=now, step=SCRAPE_INTERVAL
        )["result"]
        if not alive:
            raise RuntimeError("no site of a run was scraped in the last hour")
        latest = max(alive, key=lambda series: series["values"][-1][0])
        self.run = latest["metric"].get("run", "")
        times = [stamp for stamp, _ in latest["values"]]
        # A run of the same name before this one: the gap between them is where this one begins.
        self.last = times.pop()
        self.since = self.last
        while times and self.since - times[-1] <= 5 * SCRAPE_INTERVAL:
            self.since = times.pop()
        # Not the last moments, when some sites may have ended.
        self.until = max(self.since, self.last - 2 * SCRAPE_INTERVAL)


def values_of(prometheus, variable, replaced, moment):
    """What a variable can be: `label_values(SELECTOR, LABEL)` is the one form in use."""
    asked = re.fullmatch(r"label_values\((.+), *(\w+)\)", variable["query"]["query"])
    if not asked:
        raise RuntimeError(f"a form of query that is not known here: {variable['query']['query']}")
    selector, label = replaced(asked[1]), asked[2]
    return prometheus.get(f"label/{label}/values", **{"match[]": selector}, start=moment.since, end=moment.until)


def numbers(series):
    return [float(value) for _, values in series for value in values if math.isfinite(float(value))]


def check_queries(prometheus, moment):
    """Returns how many queries had data."""
    count = 0
    for path, dashboard in dashboards():
        chosen = {"run": moment.run}

        def replaced(query):
            query = query.replace("$__rate_interval", f"{4 * SCRAPE_INTERVAL}s")
            for name, value in chosen.items():
                query = query.replace(f"${name}", value)
            return query

        for variable in dashboard["templating"]["list"]:
            if variable["type"] != "query":
                continue
            found = values_of(prometheus, variable, replaced, moment)
            if not found or (variable["name"] == "run" and moment.run not in found):
                problem(f"{path.name}: variable {variable['name']} has no values, but {found}")
            chosen.setdefault(variable["name"], found[0] if found else "")
            count += 1
        for annotation in dashboard["annotations"]["list"]:
            if "expr" in annotation:
                prometheus.range(replaced(annotation["expr"]), moment.since, moment.until)
                count += 1
                if annotation["target"]["expr"] != annotation["expr"]:
                    problem(f"{path.name}: annotation {annotation['name']} says two things")
        for panel in panels(dashboard):
            for target in panel["targets"]:
                where = f"{path.name}, {panel['title']}, query {target['refId']}"
                try:
                    check_query(prometheus, moment, where, dashboard, panel, target, replaced(target["expr"]))
                except RuntimeError as error:
                    problem(f"{where}: {error}")
                count += 1
    return count


def check_query(prometheus, moment, where, dashboard, panel, target, query):
    if target.get("instant"):
        series = prometheus.instant(query, moment.until)
    else:
        series = prometheus.range(query, moment.since, moment.until)
    if not numbers(series) and (dashboard["uid"], panel["title"]) not in MAY_BE_EMPTY:
        problem(f"{where}: no data from {query}")
    for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
        if any(label not in labels for labels, _ in series):
            problem(f"{where}: its legend names {label}, which not all series have")
    names = {tuple(sorted(labels.items())) for labels, _ in series}
    if target["legendFormat"] and "{{" not in target["legendFormat"] and len(names) > 1:
        problem(f"{where}: {len(names)} series have one name")
    defaults = panel["fieldConfig"]["defaults"]
    if any(value < defaults.get("min", -math.inf) or value > defaults.get("max", math.inf) for value in numbers(series)):
        problem(f"{where}: values are outside of what the panel shows")
    if target.get("format") == "heatmap" and sum(numbers(series)) == 0:
        problem(f"{where}: nothing is in any bucket")


def check_rules(prometheus, moment):
    """Returns how many rules were checked."""
    text = "".join(path.read_text() for path in (ROOT / "monitoring/prometheus/rules").glob("*.yml"))
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    for kind in ["alert", "record"]:
        ours = re.findall(rf"^ *- {kind}: (\S+)", text, re.MULTILINE)
        loaded = [rule["name"] for rule in rules if (rule["type"] == "alerting") == (kind == "alert")]
        if not set(ours) <= set(loaded):
            problem(f"the Prometheus has not loaded {sorted(set(ours) - set(loaded))}")
    for rule in rules:
        if rule["health"] == "err" or rule.get("lastError"):
            problem(f"rule {rule['name']}: {rule.get('lastError')}")
        if rule["type"] == "recording":
            if not numbers(prometheus.range(f'{rule["name"]}{{run="{moment.run}"}}', moment.since, moment.until)):
                problem(f"rule {rule['name']}: has recorded nothing")
            continue
        # An alert is empty if all is well, and also if it asks for something that there is not.
        for metric, labels in selectors(rule["query"]):
            # Whether somebody is down shows in the value, not in the series.
            if not prometheus.range(metric + labels, moment.since, moment.until):
                problem(f"alert {rule['name']}: there is no {metric}{labels}")
    return len(rules)


def check_alerts(prometheus, moment):
    # Also after the end, which is no trouble either.
    after = min(moment.last + 60, time.time())
    fired = prometheus.range(f'ALERTS{{alertstate="firing", run="{moment.run}"}}', moment.since, after)
    strangers = prometheus.range(STRANGERS.replace("RUN", moment.run), moment.since, after)
    of_the_machine = OF_THE_MACHINE | (set() if strangers else {"StrangerRefused"})
    for labels, _ in fired:
        said = ", ".join(f"{key} {value}" for key, value in sorted(labels.items()) if not key.startswith("__"))
        if labels["alertname"] in of_the_machine:
            print(f"WARNING: an alert fired, which says that this machine is too busy: {said}")
        else:
            problem(f"an alert fired: {said}")


def check_run(url):
    prometheus = Prometheus(url)
    moment = Moment(prometheus)
    if moment.until - moment.since < 10:
        problem(f"run {moment.run} was scraped for {moment.until - moment.since:.0f} s; wait until there are rates")
        return
    queries = check_queries(prometheus, moment)
    rules = check_rules(prometheus, moment)
    check_alerts(prometheus, moment)
    print(
        f"monitoring: {queries} queries of dashboards and {rules} rules, with {moment.until - moment.since:.0f} s of "
        f"run {moment.run}"
    )


def main():
    what, *rest = sys.argv[1:]
    if what == "run":
        check_run(rest[0])
    else:
        {"json": check_json, "schema": check_schema}[what]()
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
