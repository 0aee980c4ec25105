//! Categorical draws from weights that many draws share.

/// Cumulative sums that are searched many times, without unpredictable branches: the number of
/// block ends below a dart names the block, the number of sums below it the index.
#[derive(Debug, Clone)]
pub struct Cumulative {
    sums: Vec<f64>,
    ends: Vec<f64>,
    block: usize,
}

impl Cumulative {
    /// Buffers of up to `n` sums.
    pub fn new(n: usize) -> Self {
        let block = n.isqrt().next_multiple_of(4);
        Cumulative { sums: vec![0.0; n], ends: vec![0.0; n.div_ceil(block)], block }
    }

    /// Sets the sums to those of the products; returns their total.
    pub fn fill(&mut self, x: &[f64], q: &[f64]) -> f64 {
        let mut total = 0.0;
        let products = x.iter().zip(q).map(|(x, q)| x * q);
        for (sum, product) in self.sums.iter_mut().zip(products) {
            total += product;
            *sum = total;
        }
        for (end, block) in self.ends.iter_mut().zip(self.sums.chunks(self.block)) {
            *end = block[block.len() - 1];
        }
        total
    }

    /// First index whose sum exceeds the dart, for darts from 0 up to the total.
    #[inline]
    pub fn find(&self, dart: f64) -> usize {
        let below = |sums: &[f64]| sums.iter().map(|&sum| usize::from(sum <= dart)).sum::<usize>();
        let last = self.ends.len() - 1;
        let start = below(&self.ends[..last]) * self.block;
        let end = (start + self.block).min(self.sums.len());
        start + below(&self.sums[start..end - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_sum_above_the_dart() {
        for n in [1, 3, 4, 7, 50, 1000] {
            let mut cumulative = Cumulative::new(n);
            let x: Vec<f64> = (0..n).map(|i| f64::from(i as u32 % 3)).collect();
            let q: Vec<f64> = (0..n).map(|i| f64::from(i as u32 % 5 + 1)).collect();
            let total = cumulative.fill(&x, &q);
            if total == 0.0 {
                continue;
            }
            for dart in 0..total as u32 {
                let dart = f64::from(dart) + 0.5;
                let mut sum = 0.0;
                let expected = (0..n).position(|i| {
                    sum += x[i] * q[i];
                    sum > dart
                });
                assert_eq!(Some(cumulative.find(dart)), expected);
            }
        }
    }
}
