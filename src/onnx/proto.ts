/** The few protobuf messages of an ONNX model, written by hand (onnx.proto3; wire format: protobuf.dev/encoding). */

/** Grows as needed. Field numbers and wire types are the caller's concern. */
class Writer {
  #bytes: Uint8Array = new Uint8Array(256);
  #length = 0;

  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  /** A whole number; negative ones take ten bytes, as int64 does. */
  integer(field: number, value: number): void {
    this.#varint(field << 3);
    this.#varint64(BigInt(value));
  }

  float(field: number, value: number): void {
    this.#varint((field << 3) | 5);
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    this.#append(bytes);
  }

  text(field: number, value: string): void {
    this.bytes(field, new TextEncoder().encode(value));
  }

  bytes(field: number, value: Uint8Array): void {
    this.#varint((field << 3) | 2);
    this.#varint(value.length);
    this.#append(value);
  }

  message(field: number, write: (writer: Writer) => void): void {
    const inner = new Writer();
    write(inner);
    this.bytes(field, inner.finish());
  }

  packed(field: number, values: readonly number[]): void {
    const inner = new Writer();
    for (const value of values) inner.#varint64(BigInt(value));
    this.bytes(field, inner.finish());
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 127) {
      this.#append(Uint8Array.of((rest % 128) | 128));
      rest = Math.floor(rest / 128);
    }
    this.#append(Uint8Array.of(rest));
  }

  #varint64(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    while (rest > 127n) {
      this.#append(Uint8Array.of(Number(rest & 127n) | 128));
      rest >>= 7n;
    }
    this.#append(Uint8Array.of(Number(rest)));
  }

  #append(bytes: Uint8Array): void {
    const needed = this.#length + bytes.length;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = needed;
  }
}

export interface ValueInfo {
  readonly name: string;
  /** TensorProto.DataType. */
  readonly dtype: number;
  /** null: a size that only the run knows and that has no name. */
  readonly shape: readonly (number | string | null)[];
}

export interface NodeProto {
  readonly operator: string;
  readonly domain: string;
  /** An empty name is an input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, number | string | readonly number[] | { readonly float: number }>>;
}

export interface InitializerProto {
  readonly name: string;
  readonly dtype: number;
  readonly shape: readonly number[];
  readonly data:
    | { readonly bytes: Uint8Array }
    | { readonly location: string; readonly byteOffset: number; readonly byteLength: number };
}

export interface ModelProto {
  readonly name: string;
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  readonly initializers: readonly InitializerProto[];
  readonly nodes: readonly NodeProto[];
  /** Domain to version. */
  readonly opsets: Readonly<Record<string, number>>;
}

const IR_VERSION = 10;

/** The bytes of a ModelProto. */
export function encodeModel(model: ModelProto): Uint8Array {
  const writer = new Writer();
  writer.integer(1, IR_VERSION);
  writer.text(2, "antiphon");
  writer.message(7, (graph) => {
    for (const node of model.nodes) graph.message(1, (inner) => writeNode(inner, node));
    graph.text(2, model.name);
    for (const tensor of model.initializers) graph.message(5, (inner) => writeInitializer(inner, tensor));
    for (const info of model.inputs) graph.message(11, (inner) => writeValueInfo(inner, info));
    for (const info of model.outputs) graph.message(12, (inner) => writeValueInfo(inner, info));
  });
  for (const [domain, version] of Object.entries(model.opsets)) {
    writer.message(8, (opset) => {
      opset.text(1, domain);
      opset.integer(2, version);
    });
  }
  return writer.finish();
}

function writeNode(writer: Writer, node: NodeProto): void {
  for (const name of node.inputs) writer.text(1, name);
  for (const name of node.outputs) writer.text(2, name);
  writer.text(4, node.operator);
  for (const [name, value] of Object.entries(node.attributes)) {
    writer.message(5, (attribute) => {
      attribute.text(1, name);
      writeAttribute(attribute, value);
    });
  }
  if (node.domain !== "") writer.text(7, node.domain);
}

/** Field 20 is AttributeProto.type: FLOAT 1, INT 2, STRING 3, INTS 7. */
function writeAttribute(writer: Writer, value: NodeProto["attributes"][string]): void {
  if (typeof value === "number") {
    writer.integer(3, value);
    writer.integer(20, 2);
  } else if (typeof value === "string") {
    writer.text(4, value);
    writer.integer(20, 3);
  } else if ("float" in value) {
    writer.float(2, value.float);
    writer.integer(20, 1);
  } else {
    writer.packed(8, value);
    writer.integer(20, 7);
  }
}

function writeInitializer(writer: Writer, tensor: InitializerProto): void {
  writer.packed(1, tensor.shape);
  writer.integer(2, tensor.dtype);
  writer.text(8, tensor.name);
  if ("bytes" in tensor.data) {
    writer.bytes(9, tensor.data.bytes);
    return;
  }
  const { location, byteOffset, byteLength } = tensor.data;
  for (const [key, value] of [
    ["location", location],
    ["offset", `${byteOffset}`],
    ["length", `${byteLength}`],
  ] as const) {
    writer.message(13, (pair) => {
      pair.text(1, key);
      pair.text(2, value);
    });
  }
  writer.integer(14, 1);
}

function writeValueInfo(writer: Writer, info: ValueInfo): void {
  writer.text(1, info.name);
  writer.message(2, (type) =>
    type.message(1, (tensor) => {
      tensor.integer(1, info.dtype);
      tensor.message(2, (shape) => {
        for (const size of info.shape) {
          shape.message(1, (dim) => {
            if (typeof size === "number") dim.integer(1, size);
            else if (size !== null) dim.text(2, size);
          });
        }
      });
    }),
  );
}
