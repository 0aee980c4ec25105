//! Evidence of a table of counts for ranks 1 to 3, with all parameters integrated out:
//! `cargo run --release --example evidence`.

use polyabayes::Result;
use polyabayes::allocation::{EvidenceMethod, EvidenceSettings, Network, Prior, Problem, evidence};
use polyabayes::counts::CountTensor;

fn main() -> Result<()> {
    // Four cells that are not zero: their indices, and their counts.
    let cells = [0, 0, 0, 1, 1, 2, 2, 2];
    let data = CountTensor::new(vec![3, 3], &cells, &[4, 3, 3, 3])?;
    for rank in 1..=3 {
        // Nodes 0 and 1 are rows and columns; node 2 is hidden, and the parent of both.
        let prior = Prior { concentration: 1.0, tables: None };
        let parents = vec![vec![2], vec![2], vec![]];
        let network = Network::new(vec![3, 3, rank], parents, vec![0, 1], &[], prior)?;
        let problem = Problem::new(&network, &data, None)?;
        let found = evidence(&problem, &EvidenceSettings::new(EvidenceMethod::Auto), 0, &())?;
        let (value, error) = (found.estimate.ln_value, found.estimate.std_error);
        println!(
            "rank {rank}: {value:.6} +- {error:.1e} nats given the total ({:?})",
            found.method
        );
    }
    Ok(())
}
