/**
 * Sets the title of the browser tab to the names of the shown parts of the console. The title begins with the name of
 * the innermost part of the console, and omits parts without a name.
 */
export function setTitle(...parts: (string | null | undefined)[]): void {
  document.title = [...parts.filter((part) => part != null && part.trim() !== ''), 'Purser'].join(
    ' – ',
  )
}
