// Embeds texts with an ONNX folder in JavaScript: one JSON array per text.
//
//   npm install @huggingface/transformers
//   tercet export MODEL --format onnx --out FOLDER
//   node embed.mjs FOLDER TEXT...

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { AutoModel, AutoTokenizer } from "@huggingface/transformers";

const [folder, ...texts] = process.argv.slice(2);
const path = resolve(folder);
const { max_tokens } = JSON.parse(readFileSync(join(path, "tercet.json"), "utf8"));
const tokenizer = await AutoTokenizer.from_pretrained(path, { local_files_only: true });
const model = await AutoModel.from_pretrained(path, {
  local_files_only: true,
  subfolder: "", // model.onnx is in the folder itself
  dtype: "fp32", // the name of the file has no suffix; onnx-int8 folders load in the same way
  config: { model_type: "bert" }, // any encoder: the graph contains what differs
});
const inputs = tokenizer(texts, { padding: true, truncation: true, max_length: max_tokens });
// A text that is too long loses its closing token with its end; every row that is full ends with one.
const { input_ids, attention_mask } = inputs;
const [rows, length] = input_ids.dims;
for (let last = length - 1; last < rows * length; last += length) {
  if (attention_mask.data[last]) input_ids.data[last] = BigInt(tokenizer.sep_token_id);
}
const { embeddings } = await model(inputs);
for (const vector of embeddings.tolist()) console.log(JSON.stringify(vector));
