// Package pictures reads pictures and prepares them for the vision tower of a CLIP model.
//
// [List] finds the files of a folder, [Decode] reads one, [ReadPreprocessor] reads the
// preprocessor_config.json that models ship, [Load] and [Stream] do all of it on every core
// for many files, and [Vectors] keeps on disk what a vision tower made of them.
//
// # What a picture is
//
// A [Picture] is upright, opaque, 8-bit RGB. The reference is Pillow, with which CLIP models
// are trained and published; differences are listed.
//
//   - The format is told by the file's first bytes: PNG, JPEG, WebP and GIF. Of animations
//     the first frame is taken, on the canvas of the whole; what it leaves open is
//     transparent. (Pillow paints that part of a GIF without a transparent colour in the
//     first colour of its palette.)
//   - JPEG files are decoded as by libjpeg-turbo, to the last bit: its accurate integer
//     transform, its upsampling of chroma ("fancy", triangle-shaped, for 4:2:0, 4:2:2 and
//     4:4:0; repetition for 4:1:1 and 4:1:0) and its tables of colour. Unusual files (RGB,
//     factors of chroma other than 1, subsampled CMYK without a transform) go through
//     image/jpeg, which rounds differently: a step or two in a small part of all values. It
//     reads four components only where the first and the last have the same factors; others,
//     which Pillow writes when told to subsample CMYK, are Unsupported.
//   - Chroma of lossy WebP files is upsampled and converted as libwebp does, which is exact.
//   - 16-bit samples become 8-bit by their high byte. (Pillow does the same with colour, but
//     clips grey to 255, which turns most such pictures white; that is not followed.)
//   - CMYK becomes RGB as Pillow's convert("RGB") has it. Colour profiles and gamma are not
//     applied, as in Pillow.
//   - Transparent pictures are laid over white: round((s a + 255 (255 - a)) / 255) for
//     straight, not premultiplied, samples s of opacity a, which is what Pillow's
//     alpha_composite and paste give. (convert("RGB"), which the reference processor calls,
//     would show the colours that transparency hides.)
//   - The EXIF orientation of JPEG, PNG and WebP files is applied, as by
//     ImageOps.exif_transpose. One that is only in XMP is not looked for.
//
// # What preprocessing is
//
// That of the CLIPImageProcessor of transformers, the one that resizes with Pillow (the
// "fast" one resizes with torchvision and differs by a step here and there): resize, centre
// crop, rescale, normalise. Given the same decoded pixels the result is the same to the
// last bit. The reference is Pillow 13, which resamples columns before rows for pictures more
// than twice as high as wide; see [Preprocessor.Resized].
package pictures
