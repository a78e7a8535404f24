// Command httppump is the floor for any proxy from pipes to HTTP: it posts each line of stdin to a URL,
// and writes the body of each answer to stdout as a line. It parses nothing, checks only the status,
// and has neither sessions nor event streams. It uses net/http with pooled connections.
package main

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

func main() {
	url := os.Args[1]
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 1024
	client := &http.Client{Transport: transport}
	var calls sync.WaitGroup
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			calls.Wait()
			return
		}
		calls.Go(func() {
			answer, err := post(client, url, line)
			if err != nil {
				log.Fatal(err)
			}
			if len(answer) > 0 { // a notification has none
				if _, err := os.Stdout.Write(append(answer, '\n')); err != nil { // a Write is atomic
					log.Fatal(err)
				}
			}
		})
	}
}

func post(client *http.Client, url string, line []byte) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		log.Fatalf("HTTP status %s", resp.Status)
	}
	answer := make([]byte, max(resp.ContentLength, 0), max(resp.ContentLength, 0)+1)
	_, err = io.ReadFull(resp.Body, answer)
	return answer, err
}
