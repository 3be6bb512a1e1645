# frozen_string_literal: true

module Pitwall
  module CLI
    # Words for Error#advice. Layers below the command name no option.
    ADVICE = {
      import: "import it first: pitwall import %s --out OUT.pit",
      max_bytes: "--max-bytes N allows more than %d",
      salvage: "try --salvage to read the rest",
      another_recording: "name another with --record FILE.pit",
      place_of_recording: "name a place with --record FILE.pit",
      another_file: "name another file with --record",
      timeout: "--timeout SECONDS allows more",
      without_bundle: "--no-bundle runs it without %s",
      failure: "--ignore-failure measures it all the same",
      one_case: "--only chooses one",
      same_cases: "both sides need the same cases, or --only",
      budget: "--budget %d holds them, --pairs N takes fewer (for counts)"
    }.freeze

    # The message of an error with its advice: "x.pit: damaged at byte 9: …; try --salvage to read the rest".
    #: (Pitwall::Error) -> String
    def self.message(error)
      [error.message, *error.advice.map { |key, value| format(ADVICE.fetch(key), *value) }].join("; ")
    end
  end
end
