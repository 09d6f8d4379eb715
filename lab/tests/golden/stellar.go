// Makes latencies.csv, statistics.csv and data-transfers.csv as STeLLAR's client does (src/benchmarking/run.go, post-processing.go and writers/ of
// github.com/vhive-serverless/STeLLAR): encoding/csv, time.RFC3339, whole milliseconds, and the quantiles, mean and standard deviation
// of gonum's stat package, whose definitions are repeated here. From lab/tests/golden: go run stellar.go
package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

type response struct {
	RequestID      string   `json:"RequestID"`
	TimestampChain []string `json:"TimestampChain"`
}

type answer struct {
	burst   int
	sent    time.Duration
	latency time.Duration
	ok      bool
	body    string
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func stdDev(x []float64) float64 {
	m, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

func quantile(p float64, x []float64) float64 {
	seen, rank := 0.0, p*float64(len(x))
	for _, v := range x {
		seen++
		if seen >= rank {
			return v
		}
	}
	panic("no quantile")
}

func write(name string, rows [][]string) {
	file, err := os.Create(name)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if err := csv.NewWriter(file).WriteAll(rows); err != nil {
		panic(err)
	}
}

func main() {
	began := time.Unix(1_700_000_000, 250_000_000).UTC()
	hosts := []string{"127.0.0.1", "example.org"}
	answers := []answer{
		{0, 1500 * time.Millisecond, 12999 * time.Microsecond, true, `{"RequestID": "a-1", "TimestampChain": ["1"]}`},
		{0, 1500 * time.Millisecond, 999 * time.Microsecond, true, "{&#34;RequestID&#34;: &#34;a-2&#34;}"},
		{1, 3999 * time.Millisecond, 1001 * time.Millisecond, true, `{"RequestID": "with, comma and \"quotes\""}`},
		{1, 4000 * time.Millisecond, time.Microsecond, false, "no"},
		{2, 9000 * time.Millisecond, 7400 * time.Microsecond, true, "no JSON"},
		{3, 12000 * time.Millisecond, 7600 * time.Microsecond, true, `{"RequestID": "a-5", "TimestampChain": ["1700000012253", "1700000012254", "1700000012256"]}`},
	}
	rows := [][]string{{"Request ID", "Host", "Sent At", "Received At", "Client Latency (ms)", "Burst ID"}}
	transfers := [][]string{{"Request ID", "Host", "Burst ID", "Function 0 Timestamp", "Function 1 Timestamp", "Function 2 Timestamp"}}
	var latencies []float64
	for _, a := range answers {
		if !a.ok {
			continue
		}
		var r response
		_ = json.Unmarshal([]byte(strings.ReplaceAll(a.body, "&#34;", "\"")), &r)
		sent := began.Add(a.sent)
		received := sent.Add(a.latency)
		ms := received.Sub(sent).Milliseconds()
		rows = append(rows, []string{r.RequestID, hosts[a.burst%2], sent.Format(time.RFC3339), received.Format(time.RFC3339),
			strconv.FormatInt(ms, 10), strconv.Itoa(a.burst)})
		transfers = append(transfers, append([]string{r.RequestID, hosts[a.burst%2], strconv.Itoa(a.burst)}, r.TimestampChain...))
		latencies = append(latencies, float64(ms))
	}
	write("data-transfers.csv", transfers)
	write("latencies.csv", rows)
	sort.Float64s(latencies)
	row := []string{strconv.Itoa(len(latencies)), fmt.Sprintf("%.2f", mean(latencies)), fmt.Sprintf("%.2f", stdDev(latencies))}
	for _, p := range []float64{0, 0.25, 0.5, 0.75, 0.95, 1} {
		row = append(row, fmt.Sprintf("%.2f", quantile(p, latencies)))
	}
	write("statistics.csv", [][]string{
		{"Count", "Mean", "Standard Deviation", "Min", "25%ile", "50%ile", "75%ile", "95%ile", "Max"}, row})
}
