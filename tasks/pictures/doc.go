// Package pictures reads images and preprocesses them for the image encoder of a CLIP model.
//
// [List] finds the files of a folder, [Decode] reads one, [ReadPreprocessor] reads a model's
// preprocessor_config.json, [Load] and [Stream] process many files on all cores, and [Vectors] caches
// the resulting embeddings on disk.
//
// # Decoding
//
// A [Picture] is upright, opaque, 8-bit RGB. The reference is Pillow, with which CLIP models are
// trained and published. Details and differences:
//
//   - The format is determined by the first bytes of the file: PNG, JPEG, WebP or GIF. Of an animation the first frame is used, on the full canvas; areas outside the frame are transparent. (Pillow fills them with the first palette colour for a GIF without a transparent colour.)
//   - JPEG files are decoded exactly as by libjpeg-turbo: its accurate integer transform, its chroma upsampling ("fancy", triangular, for 4:2:0, 4:2:2 and 4:4:0; repetition for 4:1:1 and 4:1:0) and its colour tables. Unusual files (RGB, other chroma factors, subsampled CMYK without a transform) are decoded by image/jpeg, which rounds a few values differently by one or two. It supports four components only if the first and the last have equal factors; other files, which Pillow can write as subsampled CMYK, are Unsupported.
//   - Chroma of lossy WebP files is upsampled and converted exactly as by libwebp.
//   - 16-bit samples are reduced to their high byte. (Pillow does the same with colour, but clips grey to 255, which turns most such images white.)
//   - CMYK is converted to RGB as by Pillow's convert("RGB"). Colour profiles and gamma are ignored, as in Pillow.
//   - Transparent images are composited over white: round((s a + 255 (255 - a)) / 255) for straight (not premultiplied) samples s of opacity a, as by Pillow's alpha_composite and paste. (convert("RGB"), which the reference processor calls, shows the colours of transparent pixels.)
//   - The EXIF orientation of JPEG, PNG and WebP files is applied, as by ImageOps.exif_transpose. XMP orientation is ignored.
//
// # Preprocessing
//
// Preprocessing follows the CLIPImageProcessor of transformers that resizes with Pillow (the "fast" one
// resizes with torchvision and differs slightly): resize, centre crop, rescale, normalise. For equal
// decoded pixels the result is equal to the last bit. The reference is Pillow 13, which resamples
// columns before rows if an image is more than twice as high as wide; see [Preprocessor.Resized].
// than twice as high as wide; see [Preprocessor.Resized].
package pictures
