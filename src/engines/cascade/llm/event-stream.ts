/** Server-sent events: bytes in, the data of each event out. A line may be cut anywhere, a character too. */
export async function* eventData(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let text = "";
  let data: string[] = [];
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    text = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line === "" && data.length > 0) {
        yield data.join("\n");
        data = [];
      }
    }
  }
  // Some servers leave out the last empty line.
  if (text.startsWith("data:")) data.push(text.slice(5).replace(/^ /, "").trimEnd());
  if (data.length > 0) yield data.join("\n");
}
