class ReportsController < ApplicationController
  def sales
    year = params[:year].to_i
    send_data SalesReport.new(year).to_csv, type: :csv, filename: "sales-#{year}.csv"
  end
end
