/**
 * Sets the title of the browser tab. The title begins with the name of the innermost part, and leaves out empty parts.
 */
export function setTitle(...parts: (string | null | undefined)[]): void {
  document.title = [...parts.filter((part) => part != null && part.trim() !== ''), 'Purser'].join(
    ' – ',
  )
}
