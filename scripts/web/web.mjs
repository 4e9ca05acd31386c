// Runs a model once in onnxruntime-web: node web.mjs RUNTIME.mjs, with lines of JSON on standard input,
// {model, feeds: [{name, type, shape, data}]}, data as base64. Each answer is a line: {outputs} or {error}.
import { createInterface } from 'node:readline';

const ort = await import(process.argv[2]);
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'fatal';
const arrays = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, float16: Uint16Array, float64: Float64Array, bool: Uint8Array };

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { model, feeds } = JSON.parse(line), session = await ort.InferenceSession.create(model, { logSeverityLevel: 4 }), inputs = {};
    for (const f of feeds) {
      const bytes = new Uint8Array(Buffer.from(f.data, 'base64'));
      inputs[f.name] = new ort.Tensor(f.type, new arrays[f.type](bytes.buffer), f.shape);
    }
    const outputs = {};
    for (const [name, t] of Object.entries(await session.run(inputs)))
      outputs[name] = { type: t.type, shape: t.dims, data: Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength).toString('base64') };
    await session.release();
    answer = { outputs };
  } catch (e) {
    answer = { error: String(e.message ?? e) };
  }
  console.log(JSON.stringify(answer));
}
