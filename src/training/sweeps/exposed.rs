//! Tokens of every topic by the exposure of their documents.

use super::blocks::DocumentBlock;
use crate::error::{Error, Result};

/// Tokens of every topic by exposure in some documents, which a sampler of exposures puts together.
///
/// Entries of topic k are those from `starts[k]` to `starts[k + 1]`, exposures increasing. An exposure
/// goes by its number among the different ones of the corpus; one that occurs twice adds up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedTokens {
    /// First entry of each topic, and the end.
    pub starts: Vec<u64>,
    /// Number of the exposure of each entry.
    pub exposures: Vec<u32>,
    /// Tokens of each entry.
    pub tokens: Vec<u32>,
}

impl ExposedTokens {
    /// Tokens of the documents of a block, given the number of the exposure of every document at hand.
    pub(in crate::training) fn new(
        block: &DocumentBlock,
        exposures: &[u32],
        n_topics: usize,
    ) -> Self {
        let mut counts = vec![0u32; block.lengths().len() * n_topics];
        let (_, token_documents) = block.parts();
        for (&document, &topic) in token_documents.iter().zip(block.topics()) {
            counts[document as usize * n_topics + usize::from(topic)] += 1;
        }
        let mut by_topic = vec![Vec::<(u32, u32)>::new(); n_topics];
        let exposures = &exposures[block.documents.clone()];
        for (counts, &exposure) in counts.chunks_exact(n_topics).zip(exposures) {
            let tokens = by_topic.iter_mut().zip(counts).filter(|(_, n)| **n > 0);
            tokens.for_each(|(entries, &n)| entries.push((exposure, n)));
        }
        let mut sums = ExposedTokens { starts: vec![0], exposures: vec![], tokens: vec![] };
        for mut entries in by_topic {
            entries.sort_unstable();
            let first = sums.tokens.len();
            entries.into_iter().for_each(|(exposure, n)| sums.push(first, exposure, n));
            sums.starts.push(sums.tokens.len() as u64);
        }
        sums
    }

    /// Adds tokens to the last entry of a topic, whose first is `first`, or as another one.
    fn push(&mut self, first: usize, exposure: u32, n: u32) {
        let last = (self.exposures[first..].last(), self.tokens[first..].last_mut());
        if let (Some(&last), Some(sum)) = last
            && last == exposure
            && let Some(more) = sum.checked_add(n)
        {
            *sum = more;
        } else {
            self.exposures.push(exposure);
            self.tokens.push(n);
        }
    }

    /// Checks sizes and numbers, which may come from another process.
    pub(in crate::training) fn check(&self, n_topics: usize, n_exposures: usize) -> Result<()> {
        let ExposedTokens { starts, exposures, tokens } = self;
        let (name, end) = ("tokens by exposure", starts.last().map_or(0, |&end| end as usize));
        let sizes = [(starts.len(), n_topics + 1), (exposures.len(), tokens.len())];
        for (found, expected) in sizes.into_iter().chain([(end, tokens.len())]) {
            if found != expected || !starts.is_sorted() {
                return Err(Error::Length { name, found, expected });
            }
        }
        if let Some(index) = exposures.iter().position(|&e| e as usize >= n_exposures) {
            let (value, domain) = (f64::from(exposures[index]), "below the number of exposures");
            return Err(Error::Parameter { name, index, value, domain });
        }
        Ok(())
    }

    fn entries(&self, topic: usize) -> impl Iterator<Item = (u32, u64)> {
        let own = self.starts[topic] as usize..self.starts[topic + 1] as usize;
        let tokens = self.tokens[own.clone()].iter().map(|&n| u64::from(n));
        self.exposures[own].iter().copied().zip(tokens)
    }
}

/// The tokens of a topic in all parts of a corpus, those of each exposure.
pub(in crate::training) fn by_exposure(
    parts: &[ExposedTokens],
    topic: usize,
    n_exposures: usize,
) -> Vec<u64> {
    let mut tokens = vec![0; n_exposures];
    for (exposure, n) in parts.iter().flat_map(|part| part.entries(topic)) {
        tokens[exposure as usize] += n;
    }
    tokens
}
