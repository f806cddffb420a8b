// A browser starts no worker from a file, but one from a text. The search of the site is its only worker; its text is put here.
if (location.protocol === "file:") {
    const source = SOURCE;
    const Started = window.Worker;
    window.Worker = class extends Started {
        constructor() {
            super(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
        }
    };
}
