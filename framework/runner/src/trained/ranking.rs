//! Measures how well scores tell anomalies from what is normal.

/// Area under the receiver operating characteristic: the probability that an anomaly scores higher than a normal point,
/// where a tie counts half. Not a number where one of the two is missing.
pub fn auroc(normal: &[f64], anomalies: &[f64]) -> f64 {
    let mut below = 0.0;
    let mut wins = 0.0;
    for group in groups(normal, anomalies) {
        wins += group.anomalies * (below + 0.5 * group.normal);
        below += group.normal;
    }
    wins / (normal.len() as f64 * anomalies.len() as f64)
}

/// Area under the precision–recall curve with anomalies as what is looked for, as average precision: Σ (Rₖ − Rₖ₋₁)Pₖ
/// over the distinct scores, from the highest. By chance it is the share of anomalies.
pub fn auprc(normal: &[f64], anomalies: &[f64]) -> f64 {
    let (mut found, mut called) = (0.0, 0.0);
    let mut area = 0.0;
    for group in groups(normal, anomalies).into_iter().rev() {
        found += group.anomalies;
        called += group.anomalies + group.normal;
        area += group.anomalies * found / called;
    }
    area / anomalies.len() as f64
}

/// How many points have one score.
struct Group {
    score: f64,
    normal: f64,
    anomalies: f64,
}

/// Points by score, in rising order.
fn groups(normal: &[f64], anomalies: &[f64]) -> Vec<Group> {
    let single = |score: f64, normal: f64, anomalies: f64| Group {
        score,
        normal,
        anomalies,
    };
    let normal = normal.iter().map(|&score| single(score, 1.0, 0.0));
    let anomalies = anomalies.iter().map(|&score| single(score, 0.0, 1.0));
    let mut all: Vec<_> = normal.chain(anomalies).collect();
    all.sort_by(|a, b| a.score.total_cmp(&b.score));
    all.dedup_by(|next, kept| {
        let tied = next.score == kept.score;
        if tied {
            kept.normal += next.normal;
            kept.anomalies += next.anomalies;
        }
        tied
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
    }

    /// Of the six pairs of (1, 3, 5) and (2, 4), the anomaly wins (1, 2), (1, 4), (3, 4). From above: 5 is a false call,
    /// 4 is found with precision ½, 3 is false, 2 is found with precision 2/4.
    #[test]
    fn without_ties_by_hand() {
        let (normal, anomalies) = ([5.0, 1.0, 3.0], [4.0, 2.0]);
        close(auroc(&normal, &anomalies), 0.5);
        close(auprc(&normal, &anomalies), 0.5 * 0.5 + 0.5 * 0.5);
    }

    /// Pairs of (0, 1, 1, 2) and (1, 2, 3): 1 wins one and ties two, 2 wins three and ties one, 3 wins four:
    /// (2 + 3.5 + 4)/12. From above: 3 alone, precision 1; then 2 with one false call, 2/3; then 1 with two more, 3/6.
    #[test]
    fn ties_by_hand() {
        let (normal, anomalies) = ([1.0, 0.0, 2.0, 1.0], [1.0, 2.0, 3.0]);
        close(auroc(&normal, &anomalies), 9.5 / 12.0);
        close(auprc(&normal, &anomalies), (1.0 + 2.0 / 3.0 + 0.5) / 3.0);
    }

    #[test]
    fn extremes() {
        let (low, high) = ([1.0, 2.0], [3.0, 4.0, 5.0]);
        close(auroc(&low, &high), 1.0);
        close(auroc(&high, &low), 0.0);
        close(auprc(&low, &high), 1.0);
        close(auroc(&[7.0; 4], &[7.0; 9]), 0.5);
        close(auprc(&[7.0; 4], &[7.0; 9]), 9.0 / 13.0);
        assert!(auroc(&low, &[]).is_nan() && auprc(&low, &[]).is_nan());
    }
}
