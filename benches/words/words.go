// Package words does small things with texts. Its benchmarks are what the lab's own benchmark runs.
package words

import (
	"hash/crc32"
	"sort"
	"strings"
	"unicode"
)

// Count counts the words of a text.
func Count(text string) int {
	count, inside := 0, false
	for _, c := range text {
		if unicode.IsSpace(c) {
			inside = false
		} else if !inside {
			inside = true
			count++
		}
	}
	return count
}

// Frequencies tells how often each word is there.
func Frequencies(text string) map[string]int {
	all := make(map[string]int)
	for word := range strings.FieldsSeq(text) {
		all[word]++
	}
	return all
}

// Sorted returns the words in their order.
func Sorted(text string) []string {
	all := strings.Fields(text)
	sort.Strings(all)
	return all
}

// Longest returns the longest word, the first one of several.
func Longest(text string) string {
	longest := ""
	for word := range strings.FieldsSeq(text) {
		if len(word) > len(longest) {
			longest = word
		}
	}
	return longest
}

// Reversed returns the text from its end.
func Reversed(text string) string {
	runes := []rune(text)
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes)
}

// Checksum is the text's CRC-32.
func Checksum(text string) uint32 {
	return crc32.ChecksumIEEE([]byte(text))
}

// Distance is Levenshtein's distance between two texts.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
