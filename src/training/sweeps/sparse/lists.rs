//! The topics of documents and their counts, in lists.

// The loops are compiled for several instruction sets, with all their parts in them.
#![allow(clippy::inline_always)]

use std::ops::Range;

use crate::training::sweeps::blocks::TopicWeights;
use crate::training::sweeps::inverse_cdf::LANES;
use crate::training::sweeps::tallies::Batch;

/// Topic of a place in a list that is not taken.
const NONE: u16 = u16::MAX;

/// The topics of all documents.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) documents: Vec<List>,
    pub(super) topics: Vec<[u16; LANES]>,
    pub(super) counts: Vec<[u32; LANES]>,
    /// Gain by n tokens of a topic over its weight a, for each unit of q, where topics are bursty.
    pub(super) gains: Vec<[f32; LANES]>,
    pub(super) bursty: Bursty,
    /// Place of each token in the list of its document.
    places: Vec<u16>,
}

/// Pseudo-counts and 1/s of the topics, where some are bursty.
#[derive(Default)]
pub(super) struct Bursty {
    pub(super) a: Vec<f64>,
    inverse: Vec<f64>,
}

impl Bursty {
    /// (a + n) / (1 + n/s) - a, which is not negative where a is at most s.
    #[inline(always)]
    pub(super) fn gain(&self, topic: u16, n: u32) -> f64 {
        let (topic, n) = (usize::from(topic), f64::from(n));
        n * (1.0 - self.a[topic] * self.inverse[topic]) / (1.0 + n * self.inverse[topic])
    }
}

impl Lists {
    /// Takes up the concentrations of the topics, if any is bursty.
    pub(super) fn take_bursts(&mut self, urns: TopicWeights<'_>) {
        self.gains.clear();
        let Some(bursts) = urns.bursts else { return };
        self.bursty = Bursty { a: urns.a.first().to_vec(), inverse: bursts.inverse.to_vec() };
        self.gains.resize(self.counts.len(), [0.0; LANES]);
        for line in 0..self.counts.len() {
            for lane in 0..LANES {
                self.refresh(line, lane);
            }
        }
    }

    /// Finds the gain of a place anew, whose count has changed.
    #[inline(always)]
    fn refresh(&mut self, line: usize, lane: usize) {
        let n = self.counts[line][lane];
        if let Some(gains) = self.gains.get_mut(line) {
            let topic = self.topics[line][lane];
            gains[lane] = if n == 0 { 0.0 } else { self.bursty.gain(topic, n) as f32 };
        }
    }

    /// Finds the gain at the place of a token anew, and takes it times a share.
    pub(super) fn scale(&mut self, token: usize, document: u32, share: f64) {
        let place = usize::from(self.places[token]);
        let (line, lane) = self.documents[document as usize].at(place);
        self.refresh(line, lane);
        self.gains[line][lane] = (f64::from(self.gains[line][lane]) * share) as f32;
    }

    /// Starts again, with documents of these lengths and all their tokens.
    pub(super) fn fill(
        &mut self,
        lengths: &[usize],
        n_topics: usize,
        documents: &[u32],
        topics: &[u16],
    ) {
        self.documents.clear();
        let (mut start, mut end) = (0, 0);
        let mut ends = Vec::with_capacity(lengths.len());
        for &length in lengths {
            self.documents.push(List { start, taken: 0, n_free: 0 });
            start += length.min(n_topics).div_ceil(LANES);
            ends.push(end);
            end += length;
        }
        self.topics.clear();
        self.topics.resize(start, [NONE; LANES]);
        self.counts.clear();
        self.counts.resize(start, [0; LANES]);
        let mut by_document = vec![0; topics.len()];
        for (&document, &topic) in documents.iter().zip(topics) {
            let end = &mut ends[document as usize];
            by_document[*end] = topic;
            *end += 1;
        }
        let mut place_of = vec![NONE; n_topics];
        let mut rest = &mut by_document[..];
        for (document, &length) in lengths.iter().enumerate() {
            let own = rest.split_off_mut(..length).unwrap_or_default();
            self.take_places(document, own, &mut place_of);
            ends[document] -= length;
        }
        self.places.clear();
        self.places.extend(documents.iter().map(|&document| {
            let end = &mut ends[document as usize];
            *end += 1;
            by_document[*end - 1]
        }));
    }

    /// Takes places for the tokens of a document, and turns their topics into these places. In the
    /// table of places by topic none is left over.
    fn take_places(&mut self, document: usize, tokens: &mut [u16], place_of: &mut [u16]) {
        let list = &mut self.documents[document];
        for token in tokens {
            let place = &mut place_of[usize::from(*token)];
            if *place == NONE {
                *place = list.taken as u16;
                list.taken += 1;
            }
            let (line, lane) = list.at(usize::from(*place));
            self.topics[line][lane] = *token;
            self.counts[line][lane] += 1;
            *token = *place;
        }
        let topics = self.topics[list.lines()].as_flattened();
        for &topic in &topics[..list.taken as usize] {
            place_of[usize::from(topic)] = NONE;
        }
    }

    /// Takes out tokens.
    #[inline]
    pub(super) fn remove(&mut self, tokens: Batch<'_>) {
        for (token, &document) in (tokens.first..).zip(tokens.documents) {
            let place = self.places[token];
            let list = &mut self.documents[document as usize];
            let (line, lane) = list.at(usize::from(place));
            let count = &mut self.counts[line][lane];
            *count -= 1;
            list.n_free += u32::from(*count == 0);
            self.refresh(line, lane);
        }
    }

    /// The place of a topic in the list of a document, taken where it has none.
    pub(super) fn place_for(&mut self, document: u32, topic: u16) -> usize {
        let list = &mut self.documents[document as usize];
        let topics = self.topics[list.lines()].as_flattened();
        if let Some(place) = topics.iter().position(|&other| other == topic) {
            return place;
        }
        let counts = self.counts[list.lines()].as_flattened();
        let free = if list.n_free > 0 { counts.iter().position(|&n| n == 0) } else { None };
        let place = free.unwrap_or_else(|| {
            (list.taken, list.n_free) = (list.taken + 1, list.n_free + 1);
            list.taken as usize - 1
        });
        let (line, lane) = list.at(place);
        self.topics[line][lane] = topic;
        place
    }

    /// Counts a token at a place, and returns the topic.
    #[inline]
    pub(super) fn add(&mut self, token: usize, document: u32, place: usize) -> u16 {
        self.places[token] = place as u16;
        let list = &mut self.documents[document as usize];
        let (line, lane) = list.at(place);
        list.n_free -= u32::from(self.counts[line][lane] == 0);
        self.counts[line][lane] += 1;
        self.refresh(line, lane);
        self.topics[line][lane]
    }
}

/// The topics of a document.
#[derive(Clone, Copy)]
pub(super) struct List {
    /// First line.
    start: usize,
    /// Places that have been taken.
    pub(super) taken: u32,
    /// Places whose count has fallen to zero, which are taken again first.
    n_free: u32,
}

impl List {
    /// LaneBlock and lane of a place.
    #[inline(always)]
    fn at(self, place: usize) -> (usize, usize) {
        (self.start + place / LANES, place % LANES)
    }

    /// Lines that have places taken.
    #[inline(always)]
    pub(super) fn lines(self) -> Range<usize> {
        self.start..self.start + (self.taken as usize).div_ceil(LANES)
    }
}
