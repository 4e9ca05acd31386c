// Package jpeg decodes JPEG files as libjpeg-turbo does, bit for bit. Unusual files are left
// to image/jpeg. Without it, cosines of single images move by up to 6e-3.
package jpeg
