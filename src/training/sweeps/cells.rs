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

/// Topics of the tokens of one word in the documents of a block that hold it more than once.
#[derive(Default)]
pub(super) struct Cells {
    /// Weight of a repetition in each topic, f/s: of a new draw from the topic it is q.
    pub(super) repeat: Vec<f64>,
    /// One more than the number of the cell of each document; zero for none.
    numbers: Vec<u32>,
    pub(super) repeated: Vec<Cell>,
    /// Topics and their tokens, those of one cell after the other.
    entries: Vec<(u16, u16)>,
    /// Numbers of the tokens of all cells among those of the word, in the same order.
    tokens: Vec<usize>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Cell {
    document: u32,
    /// First entry.
    start: usize,
    /// Different topics.
    n_topics: usize,
    n_tokens: usize,
    /// Tokens taken up so far.
    n_taken: usize,
}

impl Cell {
    #[inline]
    fn add(&mut self, topic: u16, entries: &mut [(u16, u16)]) {
        let own = &mut entries[self.start..][..self.n_tokens];
        let place = own[..self.n_topics].iter().position(|entry| entry.0 == topic);
        let place = place.unwrap_or(self.n_topics);
        if place == self.n_topics {
            own[place] = (topic, 0);
            self.n_topics += 1;
        }
        own[place].1 += 1;
    }
}

impl Cells {
    pub(super) fn new(weights: BurstWeights<'_>, n_documents: usize) -> Self {
        let repeat = weights.inverse.iter().zip(weights.factor).map(|(inverse, f)| inverse * f);
        Cells { repeat: repeat.collect(), numbers: vec![0; n_documents], ..Cells::default() }
    }

    /// Whether no document holds the word more than once.
    pub(super) fn is_empty(&self) -> bool {
        self.repeated.is_empty()
    }

    /// Takes up the tokens of another word, in runs of increasing documents.
    pub(super) fn take_up(&mut self, documents: &[u32], topics: &[u16]) {
        for cell in self.repeated.drain(..) {
            self.numbers[cell.document as usize] = 0;
        }
        let n_first = documents.chunk_by(|x, y| x < y).next().map_or(0, <[u32]>::len);
        for &document in &documents[n_first..] {
            let number = &mut self.numbers[document as usize];
            if *number == 0 {
                // The first token has gone by.
                self.repeated.push(Cell { document, n_tokens: 1, ..Cell::default() });
                *number = self.repeated.len() as u32;
            }
            self.repeated[*number as usize - 1].n_tokens += 1;
        }
        if self.is_empty() {
            return;
        }
        let mut start = 0;
        for cell in &mut self.repeated {
            cell.start = start;
            start += cell.n_tokens;
        }
        self.entries.clear();
        self.entries.resize(start, (0, 0));
        self.tokens.resize(start, 0);
        for (token, (&document, &topic)) in documents.iter().zip(topics).enumerate() {
            let number = self.numbers[document as usize] as usize;
            let Some(cell) = self.repeated.get_mut(number.wrapping_sub(1)) else { continue };
            self.tokens[cell.start + cell.n_taken] = token;
            cell.n_taken += 1;
            cell.add(topic, &mut self.entries);
        }
    }

    /// Topics of the word's tokens in a document, which holds it more than once; else none.
    #[inline]
    pub(super) fn of(&self, document: u32) -> &[(u16, u16)] {
        match self.numbers[document as usize] {
            0 => &[],
            number => self.entries_of(self.repeated[number as usize - 1]),
        }
    }

    /// Topics of the word's tokens in all documents that hold it more than once.
    pub(super) fn all(&self) -> impl Iterator<Item = &(u16, u16)> {
        self.repeated.iter().flat_map(|&cell| self.entries_of(cell))
    }

    /// Document, topic and number of tokens of a cell, where one topic holds them all.
    pub(super) fn whole(&self, number: usize) -> Option<(u32, (u16, u16))> {
        let cell = self.repeated[number];
        (cell.n_topics == 1).then(|| (cell.document, self.entries[cell.start]))
    }

    /// Gives all tokens of a cell, which one topic holds, to another.
    pub(super) fn rename(&mut self, number: usize, topic: u16) {
        self.entries[self.repeated[number].start].0 = topic;
    }

    /// Numbers of the tokens of a cell among those of the word.
    pub(super) fn tokens(&self, number: usize) -> &[usize] {
        let cell = self.repeated[number];
        &self.tokens[cell.start..][..cell.n_tokens]
    }

    fn entries_of(&self, cell: Cell) -> &[(u16, u16)] {
        &self.entries[cell.start..][..cell.n_topics]
    }

    /// Tokens of the word in a topic of a document, which holds it more than once.
    pub(super) fn n_tokens(&self, document: u32, topic: usize) -> f64 {
        let own = self.of(document).iter().find(|entry| usize::from(entry.0) == topic);
        own.map_or(0.0, |entry| f64::from(entry.1))
    }

    pub(super) fn add(&mut self, documents: &[u32], topics: &[u16]) {
        for (&document, &topic) in documents.iter().zip(topics) {
            let number = self.numbers[document as usize] as usize;
            let Some(cell) = self.repeated.get_mut(number.wrapping_sub(1)) else { continue };
            cell.add(topic, &mut self.entries);
        }
    }

    pub(super) fn remove(&mut self, documents: &[u32], topics: &[u16]) {
        for (&document, &topic) in documents.iter().zip(topics) {
            let number = self.numbers[document as usize] as usize;
            let Some(cell) = self.repeated.get_mut(number.wrapping_sub(1)) else { continue };
            let own = &mut self.entries[cell.start..][..cell.n_topics];
            let Some(place) = own.iter().position(|entry| entry.0 == topic) else { continue };
            own[place].1 -= 1;
            if own[place].1 == 0 {
                own.swap(place, cell.n_topics - 1);
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
