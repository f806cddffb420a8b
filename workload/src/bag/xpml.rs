//! Bags as XPML, the application file of the Gridbus broker 2.4.4, with `queueWaitTime` as Costa 2007 added it.
//!
//! What is read: `qos`, `parameter` with domain `range` or `single`, and of a `task` what is copied from `local` to `node` and
//! what is executed. Other elements are skipped, and named in [`Bag::skipped`]. The broker's two other files, of services and of
//! credentials, are refused: sites stand in an experiment, and nobody logs in to them.

use roxmltree::{Document, Node, ParsingOptions};
use scheduler::Span;

use super::{Bag, InputFile, Parameter, Values, Wishes, wrong};
use crate::trace::TraceError;

/// Elements and texts of a file at most; arbitrary, some thousand times those of the published one.
const NODES_MAX: u32 = 1 << 17;

/// Attributes of an element at most; arbitrary, some forty times those that mean something. Each is compared with all others.
const ATTRIBUTES_MAX: usize = 256;

struct Reader<'a> {
    name: &'a str,
    document: &'a Document<'a>,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Bag, TraceError> {
    if let Some(line) = too_many_attributes(text) {
        let problem =
            format!("an element has more than {ATTRIBUTES_MAX} attributes; leave out what means nothing");
        return Err(wrong(name, line, problem));
    }
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        wrong(name, u64::from(error.pos().row), format!("not XML: {error}; correct it there"))
    })?;
    Reader { name, document: &document }.bag()
}

/// The line in which an element has too many attributes, from 1, if one has.
fn too_many_attributes(text: &str) -> Option<u64> {
    let (mut line, mut count, mut before) = (1, 0, 0);
    for &byte in text.as_bytes() {
        match byte {
            b'\n' => line += 1,
            b'<' | b'>' => count = 0,
            b'"' | b'\'' if before == b'=' => count += 1,
            _ => {}
        }
        if count > ATTRIBUTES_MAX {
            return Some(line);
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    None
}

fn skip(bag: &mut Bag, name: &str) {
    if !bag.skipped.iter().any(|skipped| skipped == name) {
        bag.skipped.push(name.to_string());
    }
}

impl Reader<'_> {
    fn wrong(&self, node: Node<'_, '_>, problem: String) -> TraceError {
        wrong(self.name, u64::from(self.document.text_pos_at(node.range().start).row), problem)
    }

    fn attribute<'a>(&self, node: Node<'a, '_>, key: &str) -> Result<&'a str, TraceError> {
        let missing = || self.wrong(node, format!("<{}> has no {key}; add it", node.tag_name().name()));
        node.attribute(key).ok_or_else(missing)
    }

    fn number<N: std::str::FromStr>(&self, node: Node<'_, '_>, key: &str) -> Result<N, TraceError> {
        let text = self.attribute(node, key)?;
        text.trim().parse().map_err(|_| {
            self.wrong(node, format!("{key} is `{text}`, which is no number of its kind; write one"))
        })
    }

    fn bag(&self) -> Result<Bag, TraceError> {
        let root = self.document.root_element();
        if root.tag_name().name() != "xpml" {
            let problem = format!(
                "<{}> is no application; write <xpml>. Files of services and credentials are not read: sites stand in [grid]",
                root.tag_name().name()
            );
            return Err(self.wrong(root, problem));
        }
        let mut bag = Bag {
            name: self.name.to_string(),
            wishes: Wishes::default(),
            parameters: Vec::new(),
            inputs: Vec::new(),
            command: Vec::new(),
            skipped: Vec::new(),
        };
        for node in root.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "qos" => self.wishes(node, &mut bag)?,
                "parameter" => bag.parameters.push(self.parameter(node)?),
                "task" => self.task(node, &mut bag)?,
                name => skip(&mut bag, name),
            }
        }
        Ok(bag)
    }

    fn wishes(&self, qos: Node<'_, '_>, bag: &mut Bag) -> Result<(), TraceError> {
        for node in qos.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "deadline" => bag.wishes.deadline = Some(self.attribute(node, "value")?.to_string()),
                "budget" => bag.wishes.budget = Some(self.number(node, "value")?),
                "queueWaitTime" => {
                    let seconds: u32 = self.number(node, "value")?;
                    bag.wishes.queue_wait = Some(Span::from_secs(i64::from(seconds)));
                }
                "optimisation" => {
                    let value = self.attribute(node, "value")?;
                    if !["NONE", "COST", "TIME", "COST_TIME"].contains(&value) {
                        let problem =
                            format!("optimisation {value} is none; write NONE, COST, TIME or COST_TIME");
                        return Err(self.wrong(node, problem));
                    }
                    bag.wishes.optimisation = Some(value.to_string());
                }
                name => skip(bag, name),
            }
        }
        Ok(())
    }

    fn parameter(&self, node: Node<'_, '_>) -> Result<Parameter, TraceError> {
        let name = self.attribute(node, "name")?.to_string();
        let domain = self.attribute(node, "domain")?;
        let child = node.children().find(|child| child.has_tag_name(domain));
        let Some(child) = child.filter(|_| ["range", "single"].contains(&domain)) else {
            let problem =
                format!("parameter {name} has no <{domain}>; write domain range or single, and that inside");
            return Err(self.wrong(node, problem));
        };
        let values = if domain == "single" {
            Values::Single(self.attribute(child, "value")?.to_string())
        } else {
            let (from, to) = (self.number(child, "from")?, self.number(child, "to")?);
            let step = if child.has_attribute("interval") { self.number(child, "interval")? } else { 1 };
            if step < 1 || from > to {
                let problem = format!("parameter {name} has no values; write from <= to and interval >= 1");
                return Err(self.wrong(child, problem));
            }
            Values::Range { from, to, step }
        };
        Ok(Parameter { name, values })
    }

    fn task(&self, task: Node<'_, '_>, bag: &mut Bag) -> Result<(), TraceError> {
        let place = |copy: Node<'_, '_>, end: &str| -> Option<String> {
            let end = copy.children().find(|child| child.has_tag_name(end))?;
            end.attribute("location").map(str::to_string)
        };
        for node in task.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "copy" => {
                    let comes = place(node, "source").as_deref() == Some("local")
                        && place(node, "destination").as_deref() == Some("node");
                    let source = node.children().find(|child| child.has_tag_name("source"));
                    if let Some(source) = source.filter(|_| comes) {
                        let name = self.attribute(source, "file")?.to_string();
                        bag.inputs.push(InputFile { name, bytes: None });
                    }
                }
                "execute" => {
                    for part in node.children().filter(Node::is_element) {
                        bag.command.push(self.attribute(part, "value")?.to_string());
                    }
                }
                name => skip(bag, name),
            }
        }
        Ok(())
    }
}
