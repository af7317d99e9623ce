// The queries of the search playground: needs as people and agents write them, each with what it shows. The answers are
// recorded from the program by `npm run record`; none of them is made up, and those that miss are kept.
export const SERVERS = ['calendar', 'notes', 'text', 'units'];

export const GROUPS = [
  ['In everyday words', [
    'when am I free tomorrow', 'how far is a marathon in kilometres', 'jot down an idea', 'is there a clash between my meetings',
    'make this sentence shout', 'what day of the week was I born', 'how many words are in this essay', 'scramble a password so nobody can read it',
    'what did I write about the holiday', 'get rid of an appointment', 'how much is 20 dollars in euros', 'tidy up messy json',
  ]],
  ['Short', [
    'convert units', 'create event', 'search notes', 'diff', 'base64', 'currency', 'count words', 'regex', 'percentage', 'leap year',
  ]],
  ['Misspelt', ['convrt currancy', 'calender evnt', 'serch my noets', 'ecnode base46', 'exract emials']],
  ['Naming a server', ['calendar: list events', 'notes: pin', 'text: sort lines', 'units: convert a temperature']],
  ['Several needs at once', [
    'find a free hour and create a note about it', 'convert 5 miles to km; add an event for the run', 'extract the emails and save them in a note',
  ]],
  ['By the exact name', ['convert_units', 'notes__create_note', 'find_free_slots', 'diff_texts']],
  ['Needs that no tool here serves', ['play some jazz', 'order a pizza', 'translate this into Japanese', 'start the dishwasher', 'send a message on slack']],
];

export const QUERIES = GROUPS.flatMap(([, queries]) => queries);
