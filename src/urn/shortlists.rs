//! The topics that are likely for each word of a document.

use super::LocalUrn;

/// Topics among which sweeps mostly move the tokens of each distinct word of a document.
#[derive(Debug, Clone)]
pub struct Shortlists {
    /// Where each word's list starts in `topics` and `q`, and at the end where the last list ends.
    starts: Vec<usize>,
    topics: Vec<u16>,
    /// Weight of the word under each topic of its list.
    q: Vec<f32>,
    /// Whether each topic is on the list of each word.
    is_listed: Vec<bool>,
    n_topics: usize,
}

/// The topics that are likely for one word.
pub(super) struct Shortlist<'a> {
    pub(super) topics: &'a [u16],
    pub(super) q: &'a [f32],
    /// Whether each topic is on the list.
    pub(super) is_listed: &'a [bool],
}

impl Shortlists {
    /// The fewest topics, for each word, that together have all of its probability but the share
    /// `left_out`, where each topic holds as many balls as `balls` says.
    pub fn new(urn: &LocalUrn, balls: &[f64], left_out: f64) -> Self {
        let rows = urn.all_weights().chunks(balls.len());
        let weights = rows.flat_map(|q| q.iter().zip(balls).map(|(q, balls)| q * balls)).collect();
        Shortlists::of_weights(urn, weights, |_| left_out)
    }

    /// The same, of bursty topics, by the expected tokens of each word in each topic: all but so many of the
    /// tokens of a word, as those in one topic come together.
    pub fn of_tokens(urn: &LocalUrn, tokens: Vec<f64>, left_out: f64) -> Self {
        Shortlists::of_weights(urn, tokens, |y| left_out / f64::from(y))
    }

    fn of_weights(urn: &LocalUrn, mut weights: Vec<f64>, left_out: impl Fn(u32) -> f64) -> Self {
        let n_topics = urn.n_topics();
        let q = urn.all_weights();
        let mut lists = Shortlists {
            starts: vec![0],
            topics: Vec::new(),
            q: Vec::new(),
            is_listed: vec![false; q.len()],
            n_topics,
        };
        let mut order: Vec<u16> = (0..n_topics as u16).collect();
        let words = weights.chunks_mut(n_topics).zip(lists.is_listed.chunks_mut(n_topics));
        for ((weights, is_listed), (q, y)) in words.zip(urn.cells()) {
            let left_out = left_out(y);
            let weight = |topic: u16| weights[usize::from(topic)];
            order.sort_unstable_by(|&x, &y| weight(y).total_cmp(&weight(x)).then(x.cmp(&y)));
            let total: f64 = weights.iter().sum();
            let mut rest = total;
            for &topic in order.iter().take_while(|&&topic| weight(topic) > 0.0) {
                if rest <= left_out * total {
                    break;
                }
                rest -= weight(topic);
                is_listed[usize::from(topic)] = true;
            }
            for (topic, q) in (0..).zip(q).filter(|(topic, _)| is_listed[usize::from(*topic)]) {
                lists.topics.push(topic);
                lists.q.push(*q as f32);
            }
            lists.starts.push(lists.topics.len());
        }
        lists
    }

    /// The topics that are likely for a distinct word.
    pub(super) fn list(&self, cell: u32) -> Shortlist<'_> {
        let cell = cell as usize;
        let range = self.starts[cell]..self.starts[cell + 1];
        Shortlist {
            topics: &self.topics[range.clone()],
            q: &self.q[range],
            is_listed: &self.is_listed[cell * self.n_topics..][..self.n_topics],
        }
    }

    /// Number of tokens whose list has more than one topic, and the lengths of their lists added up.
    pub fn n_moved_and_listed(&self, counts: &[u32]) -> (usize, usize) {
        let lengths = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        let moved = lengths.zip(counts).filter(|(length, _)| *length > 1);
        moved.fold((0, 0), |(n_moved, n_listed), (length, &count)| {
            (n_moved + count as usize, n_listed + length * count as usize)
        })
    }
}
