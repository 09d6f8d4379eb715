package words

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var text = strings.Repeat("The quick brown fox jumps over the lazy dog ", 20)

func BenchmarkCount(b *testing.B) {
	for b.Loop() {
		Count(text)
	}
}

func BenchmarkFrequencies(b *testing.B) {
	for b.Loop() {
		Frequencies(text)
	}
}

func BenchmarkSorted(b *testing.B) {
	for b.Loop() {
		Sorted(text)
	}
}

func BenchmarkLongest(b *testing.B) {
	for b.Loop() {
		Longest(text)
	}
}

func BenchmarkReversed(b *testing.B) {
	for b.Loop() {
		Reversed(text)
	}
}

// Those below have the loop of before Go 1.24, which is run several times with more iterations each.

var sink int

func BenchmarkChecksum(b *testing.B) {
	for i := 0; i < b.N; i++ {
		sink += int(Checksum(text))
	}
}

func BenchmarkDistance(b *testing.B) {
	for i := 0; i < b.N; i++ {
		sink += Distance(text[:100], text[50:150])
	}
}

func BenchmarkFormat(b *testing.B) {
	for i := 0; i < b.N; i++ {
		sink += len(fmt.Sprintf("%d words, %q", i, text[:20]))
	}
}

func BenchmarkJSON(b *testing.B) {
	all := Frequencies(text)
	for i := 0; i < b.N; i++ {
		encoded, err := json.Marshal(all)
		if err != nil {
			b.Fatal(err)
		}
		sink += len(encoded)
	}
}

func BenchmarkRegexp(b *testing.B) {
	vowels := regexp.MustCompile("[aeiou]+")
	for i := 0; i < b.N; i++ {
		sink += len(vowels.FindAllStringIndex(text, -1))
	}
}

func TestWords(t *testing.T) {
	if Count("one  two\n") != 2 || Longest("a bcd ef") != "bcd" || Reversed("añb") != "bña" {
		t.Fatal("wrong")
	}
	if Distance("kitten", "sitting") != 3 || Frequencies("a b a")["a"] != 2 || Sorted("b a")[0] != "a" {
		t.Fatal("wrong")
	}
}
