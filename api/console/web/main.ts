document.title = 'Purser'

export {}
