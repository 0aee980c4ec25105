//! Inverse temperatures from 0 to 1, spaced to equal rejection.

/// Share of the mean rejection of a step that is added to each: no two rungs fall together.
const FLOOR: f64 = 0.02;

/// Points of β with the barrier up to each of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Barrier {
    betas: Vec<f64>,
    sums: Vec<f64>,
}

impl Barrier {
    /// Rejections of the steps between `betas`, the first of which is 0 and the last 1.
    pub(super) fn new(betas: &[f64], rejections: &[f64]) -> Self {
        let mut sums = vec![0.0];
        for rejection in rejections {
            sums.push(sums[sums.len() - 1] + rejection);
        }
        Barrier { betas: betas.to_vec(), sums }
    }

    /// The whole barrier Λ, the sum of the rejections.
    pub(super) fn total(&self) -> f64 {
        self.sums[self.sums.len() - 1]
    }

    /// `n` rungs from 0 to 1 with equal rejection between them.
    pub(super) fn ladder(&self, n: usize) -> Vec<f64> {
        let n_steps = self.betas.len() - 1;
        let floor = FLOOR * self.total() / n_steps as f64 + f64::MIN_POSITIVE;
        let raised = |index: usize| self.sums[index] + floor * index as f64;
        let mut step = 0;
        let mut betas: Vec<f64> = (0..n - 1)
            .map(|rung| {
                let due = raised(n_steps) * rung as f64 / (n - 1) as f64;
                while step + 1 < n_steps && raised(step + 1) < due {
                    step += 1;
                }
                let part = (due - raised(step)) / (raised(step + 1) - raised(step));
                self.betas[step] + part.min(1.0) * (self.betas[step + 1] - self.betas[step])
            })
            .collect();
        betas.push(1.0);
        betas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_lie_where_rejection_is() {
        let barrier = Barrier::new(&[0.0, 0.1, 1.0], &[0.9, 0.1]);
        assert!((barrier.total() - 1.0).abs() < 1e-15);
        let ladder = barrier.ladder(101);
        assert_eq!((ladder.len(), ladder[0], ladder[100]), (101, 0.0, 1.0));
        assert!(ladder.windows(2).all(|pair| pair[0] < pair[1]));
        let below = ladder.iter().filter(|beta| **beta < 0.1).count();
        assert!((88..=92).contains(&below), "{below}");
    }
}
