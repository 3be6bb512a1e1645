# frozen_string_literal: true

module Pitwall
  # Results over time, in a database. No gem is loaded before the database is opened.
  module History
    autoload :Analysis, "pitwall/history/analysis"
    autoload :Address, "pitwall/history/address"
    autoload :Run, "pitwall/history/run"
    autoload :Figure, "pitwall/history/run"
    autoload :Schema, "pitwall/history/schema"
    autoload :Sources, "pitwall/history/sources"
    autoload :Spool, "pitwall/history/spool"
    autoload :Store, "pitwall/history/store"
  end
end
