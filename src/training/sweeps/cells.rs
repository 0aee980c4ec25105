//! Bursty topics: every document draws its own version of a topic, φ_dk ~ Dirichlet(s_k φ_k), and with
//! that version integrated out repeats the words that it has used.
//!
//! A token of word w has topic k with probability proportional to (a_k + n_k) (s_k φ_kw + c_kw) /
//! (s_k + n_k), where c_kw are the other tokens of the word in the topic and the document. These
//! [`Cells`] are few: most words of a document occur once.

/// Concentrations of the topics, as a sweep over the tokens needs them.
#[derive(Debug, Clone, Copy)]
pub struct BurstWeights<'a> {
    /// 1/s of each topic; zero is LDA.
    pub inverse: &'a [f64],
    /// Urn weight of a word in each topic, over its probability φ there: 1, or p.
    pub factor: &'a [f64],
    /// Whether the weights of words are their tables and a prior, of which a token's own is left out, as
    /// where φ is integrated out: else the only table of a word in a topic, which has nearly all of its
    /// weight there, hardly ever leaves.
    pub without_own: bool,
}

/// Counts that bursty topics rest on after a sweep over the tokens; empty where no topic is bursty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BurstCounts {
    /// Words that a document has more than once in one topic, for each topic.
    pub repeated: Vec<Vec<RepeatedWord>>,
    /// Number of documents that have n tokens of a topic, at index n, for each topic.
    pub n_documents: Vec<Vec<u32>>,
}

/// Tokens of one word in one topic and document.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "fields are what they are called")]
pub struct RepeatedWord {
    pub word: u32,
    pub n_tokens: u16,
    /// Probability of the word in the topic.
    pub phi: f64,
}

impl BurstCounts {
    /// Adds those of other documents.
    pub(super) fn and(mut self, other: BurstCounts) -> Self {
        self.repeated.resize(self.repeated.len().max(other.repeated.len()), vec![]);
        self.repeated.iter_mut().zip(other.repeated).for_each(|(all, own)| all.extend(own));
        self.n_documents.resize(self.n_documents.len().max(other.n_documents.len()), vec![]);
        for (sum, others) in self.n_documents.iter_mut().zip(other.n_documents) {
            sum.resize(sum.len().max(others.len()), 0);
            sum.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
        }
        self
    }

    /// Counts the tokens of a document in each topic.
    pub(super) fn count(&mut self, n_topics: usize, counts: impl Iterator<Item = (usize, u32)>) {
        self.n_documents.resize(n_topics, vec![]);
        for (topic, n) in counts.filter(|(_, n)| *n > 0) {
            let (documents, n) = (&mut self.n_documents[topic], n as usize);
            documents.resize(documents.len().max(n + 1), 0);
            documents[n] += 1;
        }
    }
}

/// The tokens of a word in runs of different documents: one for the first tokens, one for the second
/// ones, and so on. Documents that hold more of the word come first, so that the same one begins all runs.
pub(super) fn runs(documents: &[u32]) -> impl Iterator<Item = &[u32]> {
    documents.chunk_by(|_, next| *next != documents[0])
}

/// Topics of the tokens of one word in the documents of a block that hold it more than once: they come
/// first in each of the word's runs, and go by their places there.
#[derive(Default)]
pub(super) struct Cells {
    /// Weight of a repetition in each topic, f/s: of a new draw from the topic it is q.
    pub(super) repeat: Vec<f64>,
    /// Whether a token's own table is left out.
    pub(super) without_own: bool,
    repeated: Vec<Cell>,
    /// Topics and their tokens, those of one cell after the other.
    entries: Vec<(u16, u16)>,
    /// First token of each run.
    runs: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Cell {
    /// First entry.
    start: u32,
    /// Different topics.
    n_topics: u32,
    n_tokens: u32,
}

impl Cell {
    #[inline]
    fn add(&mut self, topic: u16, entries: &mut [(u16, u16)]) {
        let own = &mut entries[self.start as usize..][..self.n_tokens as usize];
        let n_topics = self.n_topics as usize;
        let place = own[..n_topics].iter().position(|entry| entry.0 == topic);
        let place = place.unwrap_or(n_topics);
        if place == n_topics {
            own[place] = (topic, 0);
            self.n_topics += 1;
        }
        own[place].1 += 1;
    }
}

impl Cells {
    pub(super) fn new(weights: BurstWeights<'_>) -> Self {
        let repeat = weights.inverse.iter().zip(weights.factor).map(|(inverse, f)| inverse * f);
        let without_own = weights.without_own;
        Cells { repeat: repeat.collect(), without_own, ..Cells::default() }
    }

    /// Number of documents that hold the word more than once.
    pub(super) fn len(&self) -> usize {
        self.repeated.len()
    }

    /// Takes up the tokens of another word.
    pub(super) fn take_up(&mut self, documents: &[u32], topics: &[u16]) {
        self.repeated.clear();
        self.runs.clear();
        let mut n_before = 0;
        for run in runs(documents) {
            if self.runs.len() == 1 {
                self.repeated.resize(run.len(), Cell { start: 0, n_topics: 0, n_tokens: 1 });
            }
            self.repeated.iter_mut().take(run.len()).for_each(|cell| cell.n_tokens += 1);
            self.runs.push(n_before);
            n_before += run.len();
        }
        let mut start = 0;
        for cell in &mut self.repeated {
            cell.start = start;
            start += cell.n_tokens;
        }
        self.entries.resize(self.entries.len().max(start as usize), (0, 0));
        for (repeat, &first) in (0..).zip(&self.runs) {
            let cells = self.repeated.iter_mut().take_while(|cell| repeat < cell.n_tokens);
            cells
                .zip(&topics[first..])
                .for_each(|(cell, &topic)| cell.add(topic, &mut self.entries));
        }
    }

    /// Topics of the word's tokens in a document, by its place; none where it holds the word once.
    #[inline]
    pub(super) fn of(&self, place: usize) -> &[(u16, u16)] {
        self.repeated.get(place).map_or(&[], |&cell| self.entries_of(cell))
    }

    /// Whether the weight of a topic, seen by a token that has just left it, is without one table.
    pub(super) fn leaves_own(&self, place: usize, topic: u16) -> bool {
        self.without_own && self.of(place).iter().all(|entry| entry.0 != topic)
    }

    /// Topics of the word's tokens in all documents that hold it more than once.
    pub(super) fn all(&self) -> impl Iterator<Item = &(u16, u16)> {
        self.repeated.iter().flat_map(|&cell| self.entries_of(cell))
    }

    /// Gives all tokens of a document, which one topic holds, to another.
    pub(super) fn rename(&mut self, place: usize, topic: u16) {
        self.entries[self.repeated[place].start as usize].0 = topic;
    }

    /// Numbers of the tokens of a document among those of the word.
    pub(super) fn tokens(&self, place: usize) -> impl Iterator<Item = usize> {
        self.runs[..self.repeated[place].n_tokens as usize].iter().map(move |first| first + place)
    }

    fn entries_of(&self, cell: Cell) -> &[(u16, u16)] {
        &self.entries[cell.start as usize..][..cell.n_topics as usize]
    }

    /// Tokens of the word in a topic of a document.
    pub(super) fn n_tokens(&self, place: usize, topic: usize) -> f64 {
        let own = self.of(place).iter().find(|entry| usize::from(entry.0) == topic);
        own.map_or(0.0, |entry| f64::from(entry.1))
    }

    /// Adds a token to each of the documents from a place on.
    pub(super) fn add(&mut self, place: usize, topics: &[u16]) {
        let cells = self.repeated.iter_mut().skip(place).zip(topics);
        cells.for_each(|(cell, &topic)| cell.add(topic, &mut self.entries));
    }

    /// Takes a token from each of the documents from a place on.
    pub(super) fn remove(&mut self, place: usize, topics: &[u16]) {
        for (cell, &topic) in self.repeated.iter_mut().skip(place).zip(topics) {
            let own = &mut self.entries[cell.start as usize..][..cell.n_topics as usize];
            let Some(place) = own.iter().position(|entry| entry.0 == topic) else { continue };
            own[place].1 -= 1;
            if own[place].1 == 0 {
                own.swap(place, cell.n_topics as usize - 1);
                cell.n_topics -= 1;
            }
        }
    }

    /// Adds what documents hold more than once of the word in one topic, to a list for each topic; `phi`
    /// are its probabilities.
    pub(super) fn add_repeated(
        &self,
        word: u32,
        phi: impl Fn(usize) -> f64,
        repeated: &mut [Vec<RepeatedWord>],
    ) {
        for &(topic, n_tokens) in self.all().filter(|entry| entry.1 > 1) {
            let topic = usize::from(topic);
            repeated[topic].push(RepeatedWord { word, n_tokens, phi: phi(topic) });
        }
    }
}
