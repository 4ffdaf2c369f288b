//! The profiles of HttpArena: see bench/http/arena.h.

use std::io::Write;

use flate2::write::GzEncoder;
use flate2::Compression;
use serde::Serialize;

const GZIP_LEVEL: u32 = 5;
const CATEGORIES: [&str; 4] = ["electronics", "tools", "books", "garden"];

#[derive(Clone, Serialize)]
struct Rating {
    score: u32,
    count: u32,
}

#[derive(Clone, Serialize)]
struct Item {
    id: u32,
    name: String,
    category: &'static str,
    price: u32,
    quantity: u32,
    active: bool,
    tags: [&'static str; 2],
    rating: Rating,
}

#[derive(Serialize)]
struct Priced<'a> {
    #[serde(flatten)]
    item: &'a Item,
    total: u32,
}

#[derive(Serialize)]
struct Items<'a> {
    items: Vec<Priced<'a>>,
    count: usize,
}

/// The items that requests ask for.
pub struct Stock(Vec<Item>);

impl Stock {
    pub fn new() -> Stock {
        Stock(
            (1..=50)
                .map(|id| Item {
                    id,
                    name: format!("Item {id}"),
                    category: CATEGORIES[id as usize % 4],
                    price: 10 + id * 37 % 500,
                    quantity: 1 + id * 7 % 50,
                    active: id % 3 != 0,
                    tags: ["fast", "new"],
                    rating: Rating {
                        score: id * 13 % 50,
                        count: id * 29 % 1000,
                    },
                })
                .collect(),
        )
    }

    /// The response to PREFIX COUNT?m=MULTIPLIER; `count` is the text of the path.
    pub fn json(&self, count: &str, query: &str) -> Vec<u8> {
        let multiplier = sum_of(query) as u32;
        let count = count.parse().unwrap_or(0).min(self.0.len());
        let items = self.0[..count]
            .iter()
            .map(|item| Priced {
                total: item.price * item.quantity * multiplier,
                item,
            })
            .collect();
        serde_json::to_vec(&Items { items, count }).unwrap()
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The sum of the values of a query.
pub fn sum_of(query: &str) -> i64 {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter_map(|(_, value)| value.parse::<i64>().ok())
        .sum()
}
