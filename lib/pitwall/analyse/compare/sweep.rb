# frozen_string_literal: true

module Pitwall
  module Analyse
    # A case measured at several N, and how its time grows.
    #
    # name:      of the case without its N ("join"); parameter: what N is called ("n", "files")
    # fit:       Growth::Fit of it
    # base:      Growth::Fit of a second version, which it is held against, or nil
    # against:   Growth::Comparison of both, or nil
    # fit_name, base_name: what the two versions are called, nil where there is one
    Sweep = Struct.new(:name, :parameter, :fit, :base, :against, :fit_name, :base_name, keyword_init: true)
  end
end
