package main

import (
	"errors"
	"net/http"
)

// exchange is one HTTP request and what answers it.
type exchange struct {
	w http.ResponseWriter
	r *http.Request
}

var httpFaults = []fault{}

func serveHTTP(*fake, string) error { return errors.New("not yet") }
