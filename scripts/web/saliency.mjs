// Explains pictures: p(class) from the cosines of CLIP, and integrated gradients of log p(class) by the pixels.
import * as ort from './ort.wasm.min.mjs';

const SIZE = 64, AREA = SIZE * SIZE, PIXELS = 3 * AREA, STEPS = 16;
const $ = id => document.getElementById(id);
const settings = await (await fetch('settings.json')).json(); // classes, their vectors, mean, std, scale, pictures
ort.env.wasm.numThreads = 1; // threads need headers that a plain file server does not send
const session = await ort.InferenceSession.create('vision.grad.onnx');
const WIDTH = settings.vectors[0].length, WHITE = settings.mean.map((m, c) => (1 - m) / settings.std[c]);

// run returns the embeddings of n pictures, and the gradient of <seed, embedding> by the pixels for each.
async function run(pixels, seeds) {
  const n = pixels.length / PIXELS, out = await session.run({
    pixel_values: new ort.Tensor('float32', pixels, [n, 3, SIZE, SIZE]),
    'seed/image_embeds': new ort.Tensor('float32', seeds, [n, WIDTH]),
  });
  return { embeddings: out.image_embeds.data, gradients: out['grad/pixel_values'].data };
}

const dot = (a, b) => a.reduce((s, x, i) => s + x * b[i], 0);

// score returns log p of the classes, the softmax of scale · cosines, and the gradient of log p[k],
// by default of the likeliest class, by the embedding: the seed of the gradient by the pixels.
function score(embedding, k) {
  const norm = Math.sqrt(dot(embedding, embedding)), unit = Array.from(embedding, x => x / norm);
  const cosines = settings.vectors.map(v => dot(v, unit)), top = Math.max(...cosines);
  const rest = Math.log(cosines.reduce((s, c) => s + Math.exp(settings.scale * (c - top)), 0));
  const logp = cosines.map(c => settings.scale * (c - top) - rest);
  k ??= cosines.indexOf(top);
  const seed = new Float32Array(WIDTH);
  settings.vectors.forEach((v, j) => {
    const weight = settings.scale * ((j === k ? 1 : 0) - Math.exp(logp[j])) / norm;
    for (let i = 0; i < WIDTH; i++) seed[i] += weight * (v[i] - cosines[j] * unit[i]);
  });
  return { logp, k, seed };
}

// gradient returns log p of the classes of each picture, and the gradient of log p[k].
export async function gradient(pixels, k) {
  const n = pixels.length / PIXELS, { embeddings } = await run(pixels, new Float32Array(n * WIDTH)), seeds = new Float32Array(n * WIDTH), all = [];
  for (let i = 0; i < n; i++) {
    all.push(score(embeddings.subarray(i * WIDTH, (i + 1) * WIDTH), k));
    seeds.set(all[i].seed, i * WIDTH);
  }
  return { logp: all.map(a => a.logp), k: all[0].k, gradients: (await run(pixels, seeds)).gradients };
}

// explain returns what each pixel adds to log p[k], from a white picture to this one: integrated gradients
// (Sundararajan et al. 2017, equation 1) by the midpoint rule.
export async function explain(pixels, k) {
  const { logp, k: likeliest } = await gradient(pixels, k), points = new Float32Array(STEPS * PIXELS), white = i => WHITE[Math.floor(i / AREA)];
  for (let i = 0; i < points.length; i++) {
    const at = i % PIXELS, share = (Math.floor(i / PIXELS) + 0.5) / STEPS;
    points[i] = white(at) + share * (pixels[at] - white(at));
  }
  const { gradients } = await gradient(points, likeliest), adds = new Float32Array(AREA);
  gradients.forEach((g, i) => { adds[i % AREA] += g * (pixels[i % PIXELS] - white(i % PIXELS)) / STEPS; });
  return { logp: logp[0], k: likeliest, adds };
}

// pixelsOf draws a picture on white and returns what the model reads, of shape [1, 3, SIZE, SIZE].
export function pixelsOf(image) {
  const context = $('picture').getContext('2d', { willReadFrequently: true }), side = Math.min(image.width, image.height);
  context.fillStyle = 'white';
  context.fillRect(0, 0, SIZE, SIZE);
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, (image.width - side) / 2, (image.height - side) / 2, side, side, 0, 0, SIZE, SIZE);
  const { data } = context.getImageData(0, 0, SIZE, SIZE), pixels = new Float32Array(PIXELS);
  for (let i = 0; i < AREA; i++)
    for (let c = 0; c < 3; c++) pixels[c * AREA + i] = (data[4 * i + c] / 255 - settings.mean[c]) / settings.std[c];
  return pixels;
}

// blur averages neighbours along one axis: step is 1 for rows and SIZE for columns. Margins are taken for white.
const blur = (map, step) => map.map((x, i) => (map[i - step] ?? 0) / 4 + x / 2 + (map[i + step] ?? 0) / 4);

const FOR = [230, 70, 0], AGAINST = [0, 90, 220];

// show explains class k of the picture, or its likeliest class.
let pixels;
async function show(k) {
  $('status').textContent = 'Computing…';
  const begin = performance.now(), { logp, k: chosen, adds } = await explain(pixels, k);
  const picture = $('picture').getContext('2d').getImageData(0, 0, SIZE, SIZE), { data } = picture;
  const smooth = [1, SIZE, 1, SIZE, 1, SIZE].reduce(blur, adds), top = Math.max(...smooth.map(Math.abs));
  smooth.forEach((x, i) => { // the picture in grey under the colours of the signs
    const grey = 0.4 * (data[4 * i] + data[4 * i + 1] + data[4 * i + 2]) / 3 + 150, a = Math.sqrt(Math.abs(x) / top);
    (x > 0 ? FOR : AGAINST).forEach((colour, j) => { data[4 * i + j] = (1 - a) * grey + a * colour; });
  });
  $('map').getContext('2d').putImageData(picture, 0, 0);
  $('name').textContent = settings.classes[chosen];
  $('classes').replaceChildren(...settings.classes.map((name, j) => {
    const b = document.createElement('button');
    b.innerHTML = `<span>${name}</span><span class="bar"><i style="width:${100 * Math.exp(logp[j])}%"></i></span><span class="number">${Math.exp(logp[j]).toFixed(3)}</span>`;
    b.setAttribute('aria-pressed', j === chosen);
    b.onclick = () => show(j);
    return b;
  }));
  $('status').textContent = `${STEPS} gradients in ${((performance.now() - begin) / 1000).toFixed(1)} s`;
  document.body.dataset.shown = settings.classes[chosen];
}

async function load(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  pixels = pixelsOf(image);
  await show();
}

settings.pictures.forEach(name => {
  const b = document.createElement('button'), i = new Image();
  [i.src, i.alt] = [name, ''];
  b.append(i);
  b.onclick = () => {
    document.querySelectorAll('#gallery button').forEach(o => o.setAttribute('aria-pressed', o === b));
    return load(name);
  };
  $('gallery').append(b);
});
$('file').onchange = e => load(URL.createObjectURL(e.target.files[0]));
$('gallery').firstChild.click();
