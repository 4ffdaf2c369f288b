// The profiles of HttpArena: see bench/http/arena.h.
package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

type rating struct {
	Score int `json:"score"`
	Count int `json:"count"`
}

type product struct {
	ID       int      `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int      `json:"price"`
	Quantity int      `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags"`
	Rating   rating   `json:"rating"`
	Total    int      `json:"total"`
}

type products struct {
	Items []product `json:"items"`
	Count int       `json:"count"`
}

const gzipLevel = 5

func makeProducts() []product {
	categories := []string{"electronics", "tools", "books", "garden"}
	tags := []string{"fast", "new"}
	made := make([]product, 0, 50)
	for id := 1; id <= cap(made); id++ {
		made = append(made, product{id, "Item " + strconv.Itoa(id), categories[id%4],
			10 + id*37%500, 1 + id*7%50, id%3 != 0, tags,
			rating{id * 13 % 50, id * 29 % 1000}, 0})
	}
	return made
}

func sumOfQuery(r *http.Request) int {
	sum := 0
	for _, values := range r.URL.Query() {
		for _, value := range values {
			number, _ := strconv.Atoi(value)
			sum += number
		}
	}
	return sum
}

func handleArena() {
	all := makeProducts()
	items := func(r *http.Request, prefix string) []byte {
		count, _ := strconv.Atoi(r.URL.Path[len(prefix):])
		multiplier, _ := strconv.Atoi(r.URL.Query().Get("m"))
		chosen := append([]product(nil), all[:count]...)
		for i := range chosen {
			chosen[i].Total = chosen[i].Price * chosen[i].Quantity * multiplier
		}
		body, _ := json.Marshal(products{chosen, count})
		return body
	}
	http.HandleFunc("/baseline11", func(w http.ResponseWriter, r *http.Request) {
		sum := sumOfQuery(r)
		if r.Method == "POST" {
			body, _ := io.ReadAll(r.Body)
			number, _ := strconv.Atoi(string(body))
			sum += number
		}
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, strconv.Itoa(sum))
	})
	http.HandleFunc("/pipeline", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "ok")
	})
	http.HandleFunc("/json/", func(w http.ResponseWriter, r *http.Request) {
		body := items(r, "/json/")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	writers := sync.Pool{New: func() any {
		writer, _ := gzip.NewWriterLevel(io.Discard, gzipLevel)
		return writer
	}}
	http.HandleFunc("/json-comp/", func(w http.ResponseWriter, r *http.Request) {
		body := items(r, "/json-comp/")
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Write(body)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		writer := writers.Get().(*gzip.Writer)
		writer.Reset(w)
		writer.Write(body)
		writer.Close()
		writers.Put(writer)
	})
}
