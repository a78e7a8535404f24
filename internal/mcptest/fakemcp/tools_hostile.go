package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
)

func runReadFile(_ *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ Name string }
	if err := decodeInto(args, &a, &a.Name); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(a.Name)
	return textResult(string(text), ""), err
}

func runWriteFile(_ *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ Name string }
	if err := decodeInto(args, &a, &a.Name); err != nil {
		return nil, err
	}
	return textResult("written", ""), os.WriteFile(a.Name, []byte("x"), 0o600)
}

func runGet(_ *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ Name string }
	if err := decodeInto(args, &a, &a.Name); err != nil {
		return nil, err
	}
	resp, err := http.Get(a.Name)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return textResult(resp.Status+" "+string(text), ""), err
}
