import { describe, expect, test } from 'bun:test'
import { DocumentError } from '../../../../../shared/mail/documents/document.ts'
import {
  type Attributes,
  attributeOf,
  prefixedAttributeOf,
  readXml,
} from '../../../../../shared/mail/documents/office/xml.ts'

type Seen = { names: string[]; attributes: Attributes[]; text: string }

function read(xml: string | Uint8Array): Seen {
  const seen: Seen = { names: [], attributes: [], text: '' }
  readXml(typeof xml === 'string' ? Buffer.from(xml) : xml, {
    open: (name, attributes) => {
      seen.names.push(name)
      seen.attributes.push(attributes)
    },
    text: (text) => {
      seen.text += text
    },
  })
  return seen
}

/** Returns the reason why the reader refuses an XML file, or null if the reader accepts the file. */
function reasonOf(xml: string): string | null {
  try {
    readXml(Buffer.from(xml), { open: () => {} })
    return null
  } catch (error) {
    return error instanceof DocumentError ? error.reason : String(error)
  }
}

describe('the XML reader reads the elements of office files, and refuses dangerous or too large XML', () => {
  test('the XML reader names elements without their namespace prefix, and finds attributes with any namespace prefix', () => {
    const { names, attributes, text } = read(
      '<w:p r:id="7" w="a&amp;b">x&lt;<![CDATA[y]]><b/></w:p>',
    )
    expect([names, text]).toEqual([['p', 'b'], 'x<y'])
    expect(attributeOf(attributes[0]!, 'id')).toBe('7')
    expect(attributeOf(attributes[0]!, 'w')).toBe('a&b')
    expect(prefixedAttributeOf(attributes[0]!, 'id')).toBe('7')
    expect(prefixedAttributeOf(attributes[0]!, 'w')).toBeUndefined()
  })

  test('the XML reader decodes UTF-8 and UTF-16 in both byte orders', () => {
    const xml = '\ufeff<a>ü</a>'
    const little = Buffer.from(xml, 'utf16le')
    for (const bytes of [Buffer.from(xml), little, Buffer.from(little).swap16()]) {
      expect(read(bytes)).toMatchObject({ names: ['a'], text: expect.stringMatching(/ü$/) })
    }
  })

  test('the XML reader refuses a document type, because it may define entities', () => {
    expect(reasonOf('<!DOCTYPE a [<!ENTITY b "c">]><a/>')).toBe('malformed')
    expect(reasonOf('<?xml version="1.0"?><!-- b --><a/>')).toBeNull()
  })

  test('the XML reader accepts 256 nested elements, and refuses one more', () => {
    expect(reasonOf('<a>'.repeat(256))).toBeNull()
    expect(reasonOf('<a>'.repeat(257))).toBe('malformed')
    expect(reasonOf('<a></a>'.repeat(300))).toBeNull()
  })

  test('the XML reader accepts two million elements, and refuses one more', () => {
    expect(reasonOf('<a/>'.repeat(2_000_000))).toBeNull()
    expect(reasonOf('<a/>'.repeat(2_000_001))).toBe('too_large')
  })

  test('once the value of an XML attribute has 4,000 characters, the reader ignores the rest of the value', () => {
    const { attributes } = read(`<a b="${'x'.repeat(3_999)}&amp;y"/>`)
    expect(attributes[0]!.b).toBe(`${'x'.repeat(3_999)}&`)
  })
})
