package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
)

func runReadFile(_ *call, args json.RawMessage) (json.RawMessage, error) {
	name, err := nameOf(args)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	return textResult(string(text), ""), err
}

func runWriteFile(_ *call, args json.RawMessage) (json.RawMessage, error) {
	name, err := nameOf(args)
	if err != nil {
		return nil, err
	}
	return textResult("written", ""), os.WriteFile(name, []byte("x"), 0o600)
}

func runGet(_ *call, args json.RawMessage) (json.RawMessage, error) {
	url, err := nameOf(args)
	if err != nil {
		return nil, err
	}
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return textResult(resp.Status+" "+string(text), ""), err
}
