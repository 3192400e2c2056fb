import { Tokenizer } from 'htmlparser2'
import { DocumentError } from '../document.ts'

/**
 * Sets the maximum number of XML elements in one file. A sheet has two XML elements for each cell: one for the cell,
 * and one for its value.
 */
const ELEMENTS_MAX = 2_000_000
const DEPTH_MAX = 256
/**
 * Sets the maximum number of characters of an XML attribute's value, because the readers of office files use only
 * names, numbers and addresses, which are shorter.
 */
const VALUE_MAX_CHARS = 4_000

/** Holds the attributes of an XML element by their names. The names of the attributes keep their namespace prefix. */
export type Attributes = Readonly<Record<string, string>>

/**
 * Visits XML elements by their names without namespace prefix, because the author of the file can choose any prefix.
 */
export type XmlVisitor = {
  open(name: string, attributes: Attributes): void
  close?(name: string): void
  text?(text: string): void
  /** Tells whether the visitor needs no further XML elements, so that the XML reader can stop. */
  isDone?(): boolean
}

/**
 * Reads an XML file in one pass. The reader refuses a document type, because a few of its entities can expand to
 * gigabytes.
 * @throws {DocumentError} if the XML file is malformed or too large.
 */
export function readXml(bytes: Uint8Array, visitor: XmlVisitor): void {
  const input = decodeXml(bytes)
  let name = ''
  let attribute = ''
  let value = ''
  let attributes: Record<string, string> = {}
  let elements = 0
  let depth = 0
  const refuse = () => {
    throw new DocumentError('malformed')
  }
  const begin = () => {
    if (++elements > ELEMENTS_MAX) throw new DocumentError('too_large')
    visitor.open(name, attributes)
  }
  const tokenizer = new Tokenizer(
    { xmlMode: true, decodeEntities: true },
    {
      ontext: (start, end) => visitor.text?.(input.slice(start, end)),
      ontextentity: (code) => visitor.text?.(String.fromCodePoint(code)),
      oncdata: (start, end, offset) => visitor.text?.(input.slice(start, end - offset)),
      onopentagname: (start, end) => {
        name = localName(input.slice(start, end))
        attributes = {}
      },
      onattribname: (start, end) => {
        attribute = input.slice(start, end)
        value = ''
      },
      onattribdata: (start, end) => {
        if (value.length < VALUE_MAX_CHARS) value += input.slice(start, end)
      },
      onattribentity: (code) => {
        value += String.fromCodePoint(code)
      },
      onattribend: () => {
        attributes[attribute] = value
      },
      onopentagend: () => {
        if (++depth > DEPTH_MAX) throw new DocumentError('malformed')
        begin()
        if (visitor.isDone?.() === true) tokenizer.pause()
      },
      onselfclosingtag: () => {
        begin()
        visitor.close?.(name)
      },
      onclosetag: (start, end) => {
        depth--
        visitor.close?.(localName(input.slice(start, end)))
        if (visitor.isDone?.() === true) tokenizer.pause()
      },
      oncomment: () => {},
      // The reader refuses a document type, because it may define entities.
      ondeclaration: refuse,
      onprocessinginstruction: () => {},
      onend: () => {},
    },
  )
  tokenizer.write(input)
}

/** Returns the value of an XML attribute by its name without prefix. @returns undefined if the attribute is absent. */
export function attributeOf(attributes: Attributes, name: string): string | undefined {
  const own = attributes[name]
  if (own !== undefined) return own
  const suffix = `:${name}`
  for (const key in attributes) if (key.endsWith(suffix)) return attributes[key]
  return undefined
}

/** Returns the value of an XML attribute with any prefix, such as `r:id` beside `id`. */
export function prefixedAttributeOf(attributes: Attributes, name: string): string | undefined {
  for (const key in attributes) if (key.endsWith(`:${name}`)) return attributes[key]
  return undefined
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1)

function decodeXml(bytes: Uint8Array): string {
  const label =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : 'utf-8'
  return new TextDecoder(label).decode(bytes)
}
