//! Rounds of a tournament, in which each of some states meets each of the others once.

/// Number of rounds of `n` states.
pub(crate) fn n_rounds(n: usize) -> usize {
    n - 1 + n % 2
}

/// Pairs of a round that between them hold each state once, or all but one.
pub(crate) fn pairs(n: usize, round: usize) -> impl DoubleEndedIterator<Item = [usize; 2]> {
    // The last stands still and the others go round; of an odd number, one meets nobody.
    let n_others = n_rounds(n);
    (n % 2..n.div_ceil(2)).map(move |step| match step {
        0 => [round, n_others],
        _ => [(round + step) % n_others, (round + n_others - step) % n_others],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_all_rounds_each_state_meets_each_other_once() {
        for n in 1..9 {
            let mut met = vec![0; n * n];
            for round in 0..n_rounds(n) {
                let mut rests = vec![true; n];
                for [first, second] in pairs(n, round) {
                    met[first * n + second] += 1;
                    met[second * n + first] += 1;
                    assert!(rests[first] && rests[second]);
                    (rests[first], rests[second]) = (false, false);
                }
                assert_eq!(rests.iter().filter(|rests| **rests).count(), n % 2);
            }
            let once = |(pair, &n_met): (usize, &i32)| n_met == i32::from(pair / n != pair % n);
            assert!(met.iter().enumerate().all(once));
        }
    }
}
