package main

import "testing"

func TestHideLogins(t *testing.T) {
	for in, want := range map[string]string{
		`image: "me:hunter2@hub.example.cn/debian:12"`:     `image: "**********@hub.example.cn/debian:12"`,
		"https://me:hunter2@mirror.example.cn/simple":      "https://**********@mirror.example.cn/simple",
		"https://token@mirror.example.cn/simple":           "https://*****@mirror.example.cn/simple",
		"image: docker.io/library/debian:12@sha256:0a1b":   "image: docker.io/library/debian:12@sha256:0a1b",
		"127.0.0.1:5000/torch@sha256:0a1b, 127.0.0.1:5000": "127.0.0.1:5000/torch@sha256:0a1b, 127.0.0.1:5000",
		"m.yaml:3:4: unknown axis; write to me@example.cn": "m.yaml:3:4: unknown axis; write to me@example.cn",
	} {
		if got := string(hideLogins([]byte(in))); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", in, got, want)
		}
	}
}
