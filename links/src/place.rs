//! Where sites are, and how long light or anything else takes between them.

use scheduler::Span;
use serde::{Deserialize, Serialize};

use crate::jitter::DELAY_MAX;

/// Mean radius of the Earth in metres (Moritz 2000, Geodetic Reference System 1980: 6371008.8).
const EARTH_RADIUS: f64 = 6_371_008.8;
/// Light in glass fibre, in kilometres per second: two thirds of that in vacuum. Cables are longer than great
/// circles; a lower speed stands for that, too.
pub const FIBRE_KM_PER_S: f64 = 200_000.0;

/// The place of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On the globe, in millionths of degrees: latitude (north is positive) and longitude (east is positive).
    Earth(i32, i32),
    /// On a plane, in metres.
    Plane(i64, i64),
}

impl Place {
    /// From degrees; `None` off the globe.
    pub fn earth(latitude: f64, longitude: f64) -> Option<Place> {
        let on = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
        on.then(|| Place::Earth((latitude * 1e6).round() as i32, (longitude * 1e6).round() as i32))
    }

    /// From kilometres; `None` if further than a billion.
    pub fn plane(x: f64, y: f64) -> Option<Place> {
        let on = x.abs() <= 1e9 && y.abs() <= 1e9;
        on.then(|| Place::Plane((x * 1000.0).round() as i64, (y * 1000.0).round() as i64))
    }

    /// The distance in metres: along the great circle on the globe (haversine formula, Sinnott 1984), straight on
    /// the plane. Places of different kinds are nowhere near each other: no distance.
    pub fn distance(&self, other: &Place) -> f64 {
        match (*self, *other) {
            (Place::Earth(latitude, longitude), Place::Earth(latitude_b, longitude_b)) => {
                let radians = |millionths: i32| (f64::from(millionths) / 1e6).to_radians();
                let (phi, phi_b) = (radians(latitude), radians(latitude_b));
                let half = |angle: f64| libm::sin(angle / 2.0).powi(2);
                let turn = half(phi_b - phi)
                    + libm::cos(phi) * libm::cos(phi_b) * half(radians(longitude_b) - radians(longitude));
                2.0 * EARTH_RADIUS * libm::asin(libm::sqrt(turn.min(1.0)))
            }
            (Place::Plane(x, y), Place::Plane(x_b, y_b)) => {
                libm::hypot(x as f64 - x_b as f64, y as f64 - y_b as f64)
            }
            _ => 0.0,
        }
    }

    pub(crate) fn travel(&self, other: &Place, speed: u64) -> Span {
        let micros = libm::round(self.distance(other) * 1e6 / speed.max(1) as f64);
        Span::from_micros(micros as i64).min(DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_globe_is_ten_thousand_kilometres() {
        let pole = Place::earth(90.0, 0.0).unwrap();
        let equator = Place::earth(0.0, 77.0).unwrap();
        assert!((pole.distance(&equator) - 10_007_557.0).abs() < 1.0, "{}", pole.distance(&equator));
        assert_eq!(pole.travel(&equator, 200_000_000), Span::from_micros(50_038));
        // Across the date line, not around the globe.
        let [east, west] = [179.5, -179.5].map(|longitude| Place::earth(0.0, longitude).unwrap());
        assert!(east.distance(&west) < 112_000.0);
        assert_eq!(Place::earth(91.0, 0.0), None);
    }

    #[test]
    fn the_plane_is_straight() {
        let [a, b] = [Place::plane(0.0, 0.0).unwrap(), Place::plane(3.0, 4.0).unwrap()];
        assert_eq!(a.distance(&b), 5000.0);
        assert_eq!(a.travel(&b, 1000), Span::from_secs(5));
    }
}
