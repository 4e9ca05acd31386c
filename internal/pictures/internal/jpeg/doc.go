// Package jpeg adds to image/jpeg the chroma upsampling and colours of libjpeg-turbo, and counts scans.
package jpeg
