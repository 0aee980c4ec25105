//! The balls in an urn.

/// The balls a + n of each colour: pseudo-counts and colours drawn so far.
///
/// The draws are counted in whole numbers, so that putting a ball in and taking it out again leaves
/// a itself, however small.
#[derive(Debug, Clone, PartialEq)]
pub struct Balls {
    a: Vec<f64>,
    n: Vec<u32>,
    total: Vec<f64>,
}

impl Balls {
    /// An urn from which nothing has been drawn.
    pub fn new(a: &[f64]) -> Self {
        Balls { a: a.to_vec(), n: vec![0; a.len()], total: a.to_vec() }
    }

    /// Sets a, whose size stays; [`refill`](Self::refill) comes next.
    pub fn set_pseudo_counts(&mut self, a: &[f64]) {
        self.a.copy_from_slice(a);
    }

    /// Starts again, with the colours of these tokens drawn.
    pub fn refill(&mut self, topics: &[u16]) {
        self.n.fill(0);
        for &topic in topics {
            self.n[usize::from(topic)] += 1;
        }
        for ((total, a), &n) in self.total.iter_mut().zip(&self.a).zip(&self.n) {
            *total = a + f64::from(n);
        }
    }

    /// Adds a ball.
    #[inline]
    pub fn add(&mut self, topic: usize) {
        self.n[topic] += 1;
        self.total[topic] = self.a[topic] + f64::from(self.n[topic]);
    }

    /// Takes out a ball that was added.
    #[inline]
    pub fn remove(&mut self, topic: usize) {
        self.n[topic] -= 1;
        self.total[topic] = self.a[topic] + f64::from(self.n[topic]);
    }

    /// a + n of every colour.
    #[inline]
    pub fn totals(&self) -> &[f64] {
        &self.total
    }

    /// n of every colour.
    pub fn drawn(&self) -> &[u32] {
        &self.n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_pseudo_count_survives_a_ball() {
        let mut balls = Balls::new(&[1e-300, 2.0]);
        balls.add(0);
        balls.remove(0);
        assert!(balls.totals()[0].to_bits() == 1e-300f64.to_bits());
        balls.refill(&[1, 1, 0]);
        assert_eq!(balls.drawn(), [1, 2]);
        assert_eq!(balls.totals(), [1.0, 4.0]);
    }
}
