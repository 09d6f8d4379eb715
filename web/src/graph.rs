//! A chain's graph: members in columns by their distance from the gateway, what they send as curves between them.
//!
//! Places are attributes of SVG and not styles, so that a strict content security policy lets them pass.

use std::collections::{BTreeMap, VecDeque};

/// Width and height of a node in the drawing's own units.
pub const NODE: (u32, u32) = (150, 52);
/// From one column to the next, from one row to the next.
const STEP: (u32, u32) = (230, 84);
/// Around the drawing.
const MARGIN: u32 = 24;
/// Longest name that fits a node.
const NAME_CHARS: usize = 17;

/// Something that takes part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name; unique.
    pub name: String,
    /// A line below its name.
    pub line: String,
    /// More about it, for the tooltip.
    pub title: String,
}

/// What one sends to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Name of the sender.
    pub from: String,
    /// Name of the receiver.
    pub to: String,
    /// What stands at the curve.
    pub label: String,
    /// More about it, for the tooltip.
    pub title: String,
    /// Whether something was refused.
    pub refused: bool,
}

/// A member at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The member.
    pub member: Member,
    /// Its name as far as it fits.
    pub short: String,
    /// Left edge.
    pub x: u32,
    /// Upper edge.
    pub y: u32,
}

/// A link at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// The link.
    pub link: Link,
    /// The `d` of its path.
    pub path: String,
    /// Where its label stands.
    pub at: (u32, u32),
}

/// The drawing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
    /// All members.
    pub nodes: Vec<Node>,
    /// All links between them.
    pub curves: Vec<Curve>,
}

impl Graph {
    /// Lays out members and links. The first member is the one that distances count from; one that cannot be reached is in
    /// the last column.
    #[must_use]
    pub fn new(members: Vec<Member>, links: Vec<Link>) -> Self {
        let columns = columns(&members, &links);
        let mut rows = BTreeMap::<u32, u32>::new();
        let nodes: Vec<Node> = members
            .into_iter()
            .zip(columns)
            .map(|(member, column)| {
                let row = rows.entry(column).or_default();
                let y = MARGIN + *row * STEP.1;
                *row += 1;
                Node {
                    short: short(&member.name),
                    member,
                    x: MARGIN + column * STEP.0,
                    y,
                }
            })
            .collect();
        let width = nodes.iter().map(|node| node.x).max().unwrap_or_default();
        let lowest = nodes.iter().map(|node| node.y).max().unwrap_or_default();
        let place = |name: &str| nodes.iter().find(|node| node.member.name == name);
        let curves: Vec<Curve> = links
            .into_iter()
            .filter_map(|link| {
                let (from, to) = (place(&link.from)?, place(&link.to)?);
                let (path, at) = curve(from, to, lowest);
                Some(Curve { link, path, at })
            })
            .collect();
        Self {
            width: width + NODE.0 + MARGIN,
            // Curves that lead back pass below everything.
            height: lowest + NODE.1 + MARGIN + STEP.1 / 2,
            nodes,
            curves,
        }
    }

    /// The graph in words, for screen readers.
    #[must_use]
    pub fn description(&self) -> String {
        let links: Vec<String> = self
            .curves
            .iter()
            .map(|curve| format!("{} to {}", curve.link.from, curve.link.to))
            .collect();
        links.join(", ")
    }
}

/// Each member's distance from the first one.
fn columns(members: &[Member], links: &[Link]) -> Vec<u32> {
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    let mut next: VecDeque<&str> = VecDeque::new();
    if let Some(first) = members.first() {
        found.insert(&first.name, 0);
        next.push_back(&first.name);
    }
    while let Some(name) = next.pop_front() {
        let distance = found[name] + 1;
        for link in links.iter().filter(|link| link.from == name) {
            if !found.contains_key(link.to.as_str()) {
                found.insert(&link.to, distance);
                next.push_back(&link.to);
            }
        }
    }
    let last = found.values().max().copied().unwrap_or_default() + 1;
    members
        .iter()
        .map(|member| found.get(member.name.as_str()).copied().unwrap_or(last))
        .collect()
}

/// The path from one node to another, and where its label stands. `lowest` is where the lowest node begins.
fn curve(from: &Node, to: &Node, lowest: u32) -> (String, (u32, u32)) {
    let (width, height) = NODE;
    let (y1, y2) = (from.y + height / 2, to.y + height / 2);
    if to.x > from.x {
        let (x1, x2) = (from.x + width, to.x);
        let middle = u32::midpoint(x1, x2);
        let path = format!("M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}");
        return (path, (middle, u32::midpoint(y1, y2)));
    }
    // Back, or to itself: below all nodes, so that it crosses none.
    let (x1, x2) = (from.x + width * 2 / 3, to.x + width / 3);
    let (y1, y2) = (from.y + height, to.y + height);
    let below = lowest + height + STEP.1 / 2;
    let path = format!("M{x1} {y1} C{x1} {below} {x2} {below} {x2} {y2}");
    (
        path,
        (u32::midpoint(x1, x2), below.saturating_sub(STEP.1 / 8)),
    )
}

fn short(name: &str) -> String {
    match name.chars().count() > NAME_CHARS {
        true => name.chars().take(NAME_CHARS - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(names: &[&str], links: &[(&str, &str)]) -> Graph {
        let member = |name: &&str| Member {
            name: (*name).to_owned(),
            ..Member::default()
        };
        let link = |(from, to): &(&str, &str)| Link {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            ..Link::default()
        };
        Graph::new(
            names.iter().map(member).collect(),
            links.iter().map(link).collect(),
        )
    }

    #[test]
    fn members_stand_by_their_distance_and_never_on_each_other() {
        let graph = graph(
            &["gateway", "a", "b", "c", "alone"],
            &[
                ("gateway", "a"),
                ("a", "b"),
                ("a", "c"),
                ("c", "gateway"),
                ("b", "b"),
            ],
        );
        let x: Vec<u32> = graph.nodes.iter().map(|node| node.x).collect();
        assert!(
            x[0] < x[1] && x[1] < x[2] && x[2] == x[3] && x[3] < x[4],
            "{x:?}"
        );
        let mut places: Vec<_> = graph.nodes.iter().map(|node| (node.x, node.y)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 5);
        assert_eq!(graph.curves.len(), 5);
        for node in &graph.nodes {
            assert!(node.x + NODE.0 <= graph.width && node.y + NODE.1 <= graph.height);
        }
        for curve in &graph.curves {
            assert!(curve.at.0 <= graph.width && curve.at.1 <= graph.height);
        }
        assert!(graph.description().starts_with("gateway to a, a to b"));
    }

    #[test]
    fn links_to_nobody_and_empty_graphs_draw_nothing() {
        assert!(graph(&["a"], &[("a", "b"), ("b", "a")]).curves.is_empty());
        assert!(graph(&[], &[]).nodes.is_empty());
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let graph = graph(&["ä".repeat(64).as_str()], &[]);
        assert_eq!(graph.nodes[0].short.chars().count(), NAME_CHARS);
        assert!(graph.nodes[0].short.ends_with('…'));
    }
}
