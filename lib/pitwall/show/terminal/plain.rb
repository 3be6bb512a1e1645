# frozen_string_literal: true

module Pitwall
  module Show
    # A palette without colours, for files and tests. Its methods are those of Pastel that the views use.
    module Plain
      %i[bold dim red yellow green cyan].each { |style| define_singleton_method(style) { |text| text } }
    end
  end
end
