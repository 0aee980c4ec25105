//! Factors of symmetric matrices, row-major.

/// Share of the largest variance below which a pivot is a zero eigenvalue.
const RANK_TOLERANCE: f64 = 1e-12;

/// G with G Gᵀ = M for a positive definite M, lower triangular; `None` for another.
pub(crate) fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut g = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let (row_i, row_j) = (&g[i * n..i * n + j], &g[j * n..j * n + j]);
            let rest = matrix[i * n + j] - super::dot(row_i, row_j);
            if i == j {
                if rest.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
                    return None;
                }
                g[i * n + i] = rest.sqrt();
            } else {
                g[i * n + j] = rest / g[j * n + j];
            }
        }
    }
    Some(g)
}

/// L of `rank` columns with L Lᵀ = M for a symmetric M that has no negative eigenvalue, by pivots:
/// n x rank, row-major, and the rank; `None` where an eigenvalue is negative.
pub(crate) fn semidefinite_factor(matrix: &[f64], n: usize) -> Option<(Vec<f64>, usize)> {
    let mut rest = matrix.to_vec();
    let largest = (0..n).map(|i| matrix[i * n + i]).fold(0.0, f64::max);
    let tolerance = RANK_TOLERANCE * largest * n as f64;
    let mut columns: Vec<Vec<f64>> = Vec::new();
    loop {
        let pivot = (0..n).max_by(|&i, &j| rest[i * n + i].total_cmp(&rest[j * n + j]))?;
        let variance = rest[pivot * n + pivot];
        if variance <= tolerance || columns.len() == n {
            break;
        }
        let column: Vec<f64> = (0..n).map(|i| rest[i * n + pivot] / variance.sqrt()).collect();
        for i in 0..n {
            for j in 0..n {
                rest[i * n + j] -= column[i] * column[j];
            }
        }
        columns.push(column);
    }
    // The rest of a matrix without negative eigenvalues is rounding.
    let leftover = rest.iter().map(|x| x.abs()).fold(0.0, f64::max);
    if leftover > 1e-8 * largest.max(f64::MIN_POSITIVE) {
        return None;
    }
    let factor = (0..n).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
    Some((factor, columns.len()))
}

/// x with G Gᵀ x = b.
pub(crate) fn solve(g: &[f64], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut x = b.to_vec();
    for i in 0..n {
        let sum: f64 = (0..i).map(|j| g[i * n + j] * x[j]).sum();
        x[i] = (x[i] - sum) / g[i * n + i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| g[j * n + i] * x[j]).sum();
        x[i] = (x[i] - sum) / g[i * n + i];
    }
    x
}

/// G⁻ᵀ: the factor A of the inverse, A Aᵀ = (G Gᵀ)⁻¹, upper triangular.
pub(crate) fn inverse_factor(g: &[f64], n: usize) -> Vec<f64> {
    let mut a = vec![0.0; n * n];
    for column in 0..n {
        // Row `column` of A is the column of G⁻¹.
        a[column * n + column] = 1.0 / g[column * n + column];
        for i in column + 1..n {
            let sum: f64 = (column..i).map(|j| g[i * n + j] * a[column * n + j]).sum();
            a[column * n + i] = -sum / g[i * n + i];
        }
    }
    a
}
