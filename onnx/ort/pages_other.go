//go:build !linux

package ort

func largePages() {}
