/**
 * Reads the tokens of HTML with the tokenizer of htmlparser2. The reader makes one pass in linear time and builds no
 * tree.
 */
import { Tokenizer } from 'htmlparser2'

const ATTRIBUTE_MAX_CHARS = 8_000

/**
 * Describes an object that receives the tokens of HTML in their order. The names of elements and attributes are in
 * lower case. The object does not receive the comments of the HTML.
 */
export type HtmlSink = {
  /** Gets a piece of the text between HTML tags. Each decoded entity of the HTML arrives as a separate piece. */
  text?(text: string, isEntity: boolean): void
  /** Gets the name of an HTML tag that begins at the index `start`. The attributes of the tag follow in later calls. */
  name?(name: string, start: number): void
  /** Gets an HTML attribute with decoded entities. The HTML reader cuts the attribute's value at 8,000 characters. */
  attribute?(name: string, value: string): void
  /** Gets the index of the `>` at the end of an opening tag. */
  begin?(end: number): void
  end?(name: string): void
  /**
   * Tells whether the receiver of the tokens wants no further tokens. The HTML reader calls this function after each
   * tag.
   */
  isDone?(): boolean
}

/** Reads HTML, and passes each token to the receiving object. */
export function readHtml(input: string, sink: HtmlSink): void {
  let name = ''
  let value = ''
  const pauseIfDone = () => {
    if (sink.isDone?.() === true) tokenizer.pause()
  }
  const begin = (end: number) => {
    sink.begin?.(end)
    pauseIfDone()
  }
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      ontext: (start, end) => sink.text?.(input.slice(start, end), false),
      ontextentity: (code) => sink.text?.(String.fromCodePoint(code), true),
      onopentagname: (start, end) => sink.name?.(input.slice(start, end).toLowerCase(), start - 1),
      onattribname: (start, end) => {
        name = input.slice(start, end).toLowerCase()
        value = ''
      },
      onattribdata: (start, end) => {
        if (value.length < ATTRIBUTE_MAX_CHARS) value += input.slice(start, end)
      },
      onattribentity: (code) => {
        value += String.fromCodePoint(code)
      },
      onattribend: () => sink.attribute?.(name, value.slice(0, ATTRIBUTE_MAX_CHARS)),
      onopentagend: begin,
      onselfclosingtag: begin,
      onclosetag: (start, end) => {
        sink.end?.(input.slice(start, end).toLowerCase())
        pauseIfDone()
      },
      oncomment: () => {},
      oncdata: () => {},
      ondeclaration: () => {},
      onprocessinginstruction: () => {},
      onend: () => {},
    },
  )
  tokenizer.write(input)
  tokenizer.end()
}
